package config_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

// clusterOnly are what the manager does with --scope=cluster only.
var clusterOnly = []string{
	"create persistentvolumeclaims in shop", "delete persistentvolumeclaims in shop", "update pods/finalizers in shop",
	"patch nodes/status", "get csidrivers.storage.k8s.io",
	"patch volumeattributesclasses.storage.k8s.io",
}

// With each overlay and scope is how many controllers run then.
var _ = DescribeTable("the rights of a manager are enough for its scope, and no more:", Serial,
	func(ctx SpecContext, overlay, scope string, controllers int) {
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "stowage-manager-cluster"}}
		Expect(client.IgnoreNotFound(admin.Delete(ctx, binding))).To(Succeed())
		// In each scope the manager makes the lease, whichever runs first.
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "manager.stowage.dev", Namespace: "stowage-system"}}
		Expect(client.IgnoreNotFound(admin.Delete(ctx, lease))).To(Succeed())
		apply(ctx, built(ctx, folder(overlay)))
		for _, action := range clusterOnly {
			Eventually(may).WithArguments(ctx, managerAccount, action).WithTimeout(settled).Should(Equal(scope == "cluster"), action)
		}

		cloud, claim := withKey(ctx), withDriver(ctx)
		manager := started(ctx, scope)
		Eventually(func() int { return strings.Count(string(manager.Out.Contents()), `"Starting workers"`) }).
			WithTimeout(settled).Should(Equal(controllers), "controllers that have all that they watch")
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(cloud), cloud)).To(Succeed())
			g.Expect(cloud.Status.Conditions).To(ContainElement(And(HaveField("Type", "Ready"), HaveField("Message", ContainSubstring("gce-key")))))
		}).WithTimeout(settled).Should(Succeed(), "a backend whose key was read")
		expectMadeByDriver(ctx, claim)
		manager.Terminate()
		Eventually(manager).WithTimeout(settled).Should(gexec.Exit())
		Expect(manager.Out).NotTo(gbytes.Say("forbidden"))
	},
	Entry("default", "default", "classes", 12),
	Entry("standalone", "standalone", "cluster", 15),
)

// withKey makes a backend of a cloud whose key is of no use, and the Secret that has it.
func withKey(ctx SpecContext) *stowagev1alpha1.StorageBackend {
	GinkgoHelper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "gce-key", Namespace: "stowage-system"}, StringData: map[string]string{"key.json": "{}"},
	}
	backend := &stowagev1alpha1.StorageBackend{ObjectMeta: metav1.ObjectMeta{Name: "keyed"}}
	backend.Spec.GCE = &stowagev1alpha1.GCEBackend{
		Project: "project", Zones: []string{"zone"}, CredentialsSecret: &stowagev1alpha1.SecretReference{Name: secret.Name},
	}
	for _, object := range []client.Object{secret, backend} {
		Expect(admin.Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(admin.Delete(ctx, object)).To(Succeed())
			none := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))
			Expect(client.IgnoreNotFound(admin.Patch(ctx, object, none))).To(Succeed())
		})
	}
	return backend
}

// started runs a manager, with nothing but its own rights.
func started(ctx SpecContext, scope string) *gexec.Session {
	GinkgoHelper()
	identity := apiserver.Manager()
	if scope == "cluster" {
		identity = apiserver.Manager(apiserver.ClusterScope)
	}
	text, err := server.Kubeconfig(identity.UserName, identity.Groups...)
	Expect(err).NotTo(HaveOccurred())
	kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(kubeconfig, text, 0o600)).To(Succeed())
	program := filepath.Join(GinkgoT().TempDir(), "manager")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", program, "./cmd/manager")
	build.Dir = apiserver.Repository()
	output, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
	log := gbytes.NewBuffer()
	session, err := gexec.Start(exec.CommandContext(ctx, program, "--scope="+scope, "-v=1", "--kubeconfig="+kubeconfig,
		"--leader-election-namespace=stowage-system", "--metrics-bind-address=0", "--health-probe-bind-address=0"), log, log)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Kill().Wait(settled) })
	session.Out = log
	return session
}
