package config_test

import (
	"net/http"
	"net/http/httptest"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/internal/program"
)

// tokenOf makes a service account in the namespace default, and a token of it.
func tokenOf(ctx SpecContext, name string) string {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	Expect(admin.Create(ctx, account)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, account)).To(Succeed()) })
	request := &authenticationv1.TokenRequest{}
	Expect(admin.SubResource("token").Create(ctx, account, request)).To(Succeed())
	return request.Status.Token
}

// readsMetrics binds a service account to the role that config/rbac has for readers, and waits until the server has noticed.
func readsMetrics(ctx SpecContext, name string) {
	GinkgoHelper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "stowage-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: name}},
	}
	Expect(admin.Create(ctx, binding)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, binding)).To(Succeed()) })
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:                  "system:serviceaccount:" + metav1.NamespaceDefault + ":" + name,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/metrics"},
	}}
	Eventually(func() bool {
		Expect(admin.Create(ctx, review)).To(Succeed())
		return review.Status.Allowed
	}).WithTimeout(settled).Should(BeTrue())
}

var _ = Describe("metrics", func() {
	It("are served to users with the right to read them, and to no others", func(ctx SpecContext) {
		apply(ctx, built(ctx, folder("default")))
		filter, err := program.ByOwnToken(server.Config, nil)
		Expect(err).NotTo(HaveOccurred())
		served, err := filter(logr.Discard(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		Expect(err).NotTo(HaveOccurred())
		read := func(path, authorization string) int {
			request := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
			request.Header.Set("Authorization", authorization)
			answer := httptest.NewRecorder()
			served.ServeHTTP(answer, request)
			return answer.Code
		}
		reader, other := tokenOf(ctx, "prometheus"), tokenOf(ctx, "curious")
		readsMetrics(ctx, "prometheus")

		for range 2 {
			Expect(read("/metrics", "Bearer "+reader)).To(Equal(http.StatusOK))
			Expect(read("/debug", "Bearer "+reader)).To(Equal(http.StatusForbidden))
			Expect(read("/metrics", "Bearer "+other)).To(Equal(http.StatusForbidden))
			Expect(read("/metrics", "Bearer forged")).To(Equal(http.StatusUnauthorized))
			Expect(read("/metrics", "Basic "+reader)).To(Equal(http.StatusUnauthorized))
			Expect(read("/metrics", "")).To(Equal(http.StatusUnauthorized))
		}
	})
})
