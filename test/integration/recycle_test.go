package integration_test

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/recycling"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("With a directory of a node, and its agent", Ordered, func() {
	var root string

	BeforeEach(func(ctx SpecContext) {
		var err error
		root, err = filepath.EvalSymlinks(GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		startManager()
		startAgent("n1", root)
		DeferCleanup(removeEverything)
		create(ctx, Node("n1"))
	})

	It("a volume of policy Recycle is emptied, and goes from claim to claim", func(ctx SpecContext) {
		folder := filepath.Join(root, "scratch")
		Expect(os.Mkdir(folder, 0o755)).To(Succeed())
		create(ctx, recycledIn(folder))
		for _, name := range []string{"first", "second"} {
			claim := Claim(ClaimNamed(name), InClass(""))
			create(ctx, claim)
			eventuallyBound(ctx, claim)
			Expect(os.ReadDir(folder)).To(BeEmpty())
			Expect(os.WriteFile(filepath.Join(folder, name), nil, 0o600)).To(Succeed())

			Expect(users.Delete(ctx, claim)).To(Succeed())

			eventuallyAvailable(ctx, recycledIn(folder))
			eventuallyEmpty(ctx, &stowagev1alpha1.NodeRecyclingList{})
		}
		Expect(os.ReadDir(folder)).To(BeEmpty())
	})

	It("a volume outside the agent's folder keeps its data, and says what to do", func(ctx SpecContext) {
		folder := GinkgoT().TempDir()
		file := filepath.Join(folder, "precious")
		Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
		pv, claim := recycledIn(folder), Claim(InClass(""))
		create(ctx, pv, claim)
		eventuallyBound(ctx, claim)

		Expect(users.Delete(ctx, claim)).To(Succeed())

		Eventually(func(g Gomega) {
			g.Expect(users.Get(ctx, client.ObjectKeyFromObject(pv), pv)).To(Succeed())
			g.Expect(pv.Status.Phase).To(Equal(corev1.VolumeFailed))
			g.Expect(pv.Status.Message).To(ContainSubstring("--recycle-root, " + root))
		}).WithContext(ctx).WithTimeout(soon).Should(Succeed())
		Expect(file).To(BeAnExistingFile())
		eventuallyEmpty(ctx, &stowagev1alpha1.NodeRecyclingList{})
	})
})

// recycledIn is a volume of policy Recycle in a directory of a node.
func recycledIn(folder string) *corev1.PersistentVolume {
	return Volume("scratch", OnNode("n1"), Reclaimed(corev1.PersistentVolumeReclaimRecycle), func(pv *corev1.PersistentVolume) {
		pv.Spec.HostPath.Path = folder
	})
}

// startAgent runs what of a node's agent empties directories until the spec ends.
func startAgent(node, root string) {
	GinkgoHelper()
	skipNames := true
	mgr, err := ctrl.NewManager(server.As(apiserver.Agent(node)), ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&stowagev1alpha1.NodeRecycling{}: {Field: fields.OneTermEqualSelector("spec.nodeName", node)},
		}},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: &skipNames},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(recycling.NewReconciler(recycling.Options{
		NodeName: node, Folder: recycling.Folder{Root: root},
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{},
	}).SetupWithManager(mgr)).To(Succeed())
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	DeferCleanup(func() {
		stop()
		Expect(<-stopped).To(Succeed())
	})
}
