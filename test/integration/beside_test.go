package integration_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// binderUser is the user that binds where Stowage leaves binding to another controller.
const binderUser = "another-binder"

var _ = Describe("Beside another binder, in scope=classes", func() {
	const claims = 10
	var ours, theirs *counter
	var storage *fake.Backend

	BeforeEach(func(ctx SpecContext) {
		ours, theirs, storage = &counter{}, &counter{}, fake.New()
		kind := fake.Kind{For: stowagev1alpha1.LocalType, Backend: storage}
		allowBinder(ctx)
		// The other one knows of no storage, and may not write what is Stowage's.
		manager{config: theirs.count(server.As(rest.ImpersonationConfig{UserName: binderUser})), scope: reconciler.ClusterScope}.start()
		manager{config: ours.count(asManager(reconciler.ClassesScope)), scope: reconciler.ClassesScope, kinds: []backend.Kind{kind}}.start()
		DeferCleanup(removeEverything)
		create(ctx, LocalBackend("disks"))
	})

	It("static volumes and their claims are not written at all", func(ctx SpecContext) {
		for i := range claims {
			create(ctx, sizedVolume(i), sizedClaim(i))
		}

		eventuallyAtRest(ctx)

		Expect(boundClaims(ctx)).To(Equal(claims))
		Expect(ours.total()).To(BeZero(), "%v", ours.accepted())
	})

	It("claims are provisioned when they are asked to be, in at most three writes each, and bound by the other", func(ctx SpecContext) {
		for i := range claims {
			create(ctx, Claim(ClaimNamed(name("claim", i)), InClass("disks"), askingOf(stowagev1alpha1.LocalDriver)))
		}

		Eventually(boundClaims).WithArguments(ctx).WithTimeout(soon).Should(Equal(claims))
		eventuallyAtRest(ctx)

		// The other one, which is Stowage too, may be the first to clear an intent.
		Expect(len(ours.accepted())).To(And(BeNumerically(">=", 2*claims), BeNumerically("<=", 3*claims)))
		Expect(ours.accepted()).NotTo(ContainElement(ContainSubstring("/status")))
		Expect(theirs.accepted()).NotTo(ContainElement(HavePrefix("POST")))
		Expect(storage.Len()).To(Equal(claims))
		for i := range claims {
			claim := Claim(ClaimNamed(name("claim", i)))
			eventuallyBound(ctx, claim)
			Expect(claim.Finalizers).NotTo(ContainElement(stowagev1alpha1.ProvisioningFinalizer))
		}
	})
})

// askingOf asks a driver for a claim's volume, as kube-controller-manager does.
func askingOf(driver string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnStorageProvisioner, driver)
	}
}

// allowBinder lets the other binder write what is Kubernetes' own.
func allowBinder(ctx context.Context) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: binderUser}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"", "storage.k8s.io", "events.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{APIGroups: []string{stowagev1alpha1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: binderUser},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: binderUser},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: binderUser}},
	}
	for _, object := range []client.Object{role, binding} {
		Expect(client.IgnoreAlreadyExists(users.Create(ctx, object))).To(Succeed())
	}
}
