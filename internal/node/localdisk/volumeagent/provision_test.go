package volumeagent_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/diskagent"
	"github.com/stowage-dev/stowage/internal/node/localdisk/volumeagent"
)

const gibibyte = 1 << 30

var _ = Describe("A volume that is requested", func() {
	var n *node

	BeforeEach(func() { n = newNode() })

	It("is a directory that any pod can write, in a folder that only root can enter", func(ctx context.Context) {
		volume := n.made(ctx)

		info, err := os.Stat(dir(volume))
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(BeEquivalentTo(0o777))
		folder, err := os.Stat(filepath.Dir(dir(volume)))
		Expect(err).NotTo(HaveOccurred())
		Expect(folder.Mode().Perm()).To(BeEquivalentTo(0o700))
		again := read(ctx, volume)
		Expect(provisioned(ctx, volume)).To(Equal("True Ready"))
		Expect(again.Status.Path).To(Equal(dir(volume)))
		Expect(again.Status.Capacity.String()).To(Equal("100Mi"))
		Expect(again.Status.ObservedGeneration).To(Equal(again.Generation))
	})

	It("has its status written only when that changes", func(ctx context.Context) {
		volume := n.made(ctx)
		before := read(ctx, volume).ResourceVersion
		n.reconcile(ctx, volume)
		Expect(read(ctx, volume).ResourceVersion).To(Equal(before))
	})

	It("is left to its own node", func(ctx context.Context) {
		volume := newNode().volume(ctx)
		n.reconcile(ctx, volume)
		Expect(dir(volume)).NotTo(BeADirectory())
		Expect(provisioned(ctx, volume)).To(BeEmpty())
	})

	It("is adopted after a crash between making and reporting it", func(ctx context.Context) {
		volume := n.volume(ctx)
		Expect(os.MkdirAll(dir(volume), 0o777)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir(volume), "hello"), nil, 0o600)).To(Succeed())
		n.reconcile(ctx, volume)
		Expect(provisioned(ctx, volume)).To(Equal("True Ready"))
		Expect(filepath.Join(dir(volume), "hello")).To(BeAnExistingFile())
	})

	DescribeTable("is refused if it isn't supported, and goes when it is deleted", func(ctx context.Context, reason string, change func(*stowagev1alpha1.NodeVolume)) {
		volume := n.volume(ctx, change)
		n.reconcile(ctx, volume)
		Expect(provisioned(ctx, volume)).To(Equal("False " + reason))
		Expect(ready(ctx, volume)).To(Equal("False " + reason))
		Expect(n.events.Events).To(Receive(HavePrefix("Warning " + reason)))
		Expect(entries(volume)).To(BeEmpty())

		reclaim(ctx, volume)
		n.reconcile(ctx, volume)
		Expect(read(ctx, volume)).To(BeNil())
	},
		Entry("another claim's name", stowagev1alpha1.ReasonInvalid, func(volume *stowagev1alpha1.NodeVolume) { volume.Name = "pvc-of-another-" + volume.Name }),
		Entry("a path outside the base", stowagev1alpha1.ReasonPathOutsideBase, at("/srv/elsewhere")),
	)

	It("reports which flag to change when its path is outside the base", func(ctx context.Context) {
		volume := n.volume(ctx, at("/srv/elsewhere"))
		n.reconcile(ctx, volume)
		_, message := conditionOf(ctx, volume, stowagev1alpha1.ReadyCondition)
		Expect(message).To(And(ContainSubstring("--local-base is "+n.base), ContainSubstring("DaemonSet")))
	})

	It("is never made through a symlink", func(ctx context.Context) {
		outside := GinkgoT().TempDir()
		Expect(os.Symlink(outside, filepath.Join(n.base, "fast"))).To(Succeed())
		volume := n.volume(ctx)
		n.reconcile(ctx, volume)
		verdict, message := conditionOf(ctx, volume, stowagev1alpha1.ProvisionedCondition)
		Expect(verdict).To(Equal("False Unavailable"))
		Expect(message).To(ContainSubstring("symlink"))
		Expect(os.ReadDir(outside)).To(BeEmpty())
	})

	It("is not made where a file lies in its folder's place", func(ctx context.Context) {
		Expect(os.WriteFile(filepath.Join(n.base, "fast"), []byte("kept"), 0o600)).To(Succeed())
		volume := n.volume(ctx)
		n.reconcile(ctx, volume)
		Expect(provisioned(ctx, volume)).To(Equal("False Unavailable"))
		Expect(os.ReadFile(filepath.Join(n.base, "fast"))).To(BeEquivalentTo("kept"))
	})

	It("is not made while the base is missing", func(ctx context.Context) {
		Expect(os.Remove(n.base)).To(Succeed())
		volume := n.volume(ctx)
		n.reconcile(ctx, volume)
		Expect(provisioned(ctx, volume)).To(Equal("False Unavailable"))
		Expect(n.base).NotTo(BeADirectory())
		Expect(os.Mkdir(n.base, 0o755)).To(Succeed())
		n.reconcile(ctx, volume)
		Expect(provisioned(ctx, volume)).To(Equal("True Ready"))
	})

	It("is not made on the root disk while the disk is not mounted that others of its folder lie on", func(ctx context.Context) {
		n.disk("fast", gibibyte)
		n.made(ctx)
		Expect(kernel.Unmount(filepath.Join(n.base, "fast"))).To(Succeed())
		volume := n.volume(ctx)
		n.reconcile(ctx, volume)
		verdict, message := conditionOf(ctx, volume, stowagev1alpha1.ProvisionedCondition)
		Expect(verdict).To(Equal("False Unavailable"))
		Expect(message).To(ContainSubstring("mount that disk there"))
		Expect(os.ReadDir(filepath.Join(n.base, "fast"))).To(BeEmpty())
	})

	It("is not made when the disk has no room, and reports how much there is", func(ctx context.Context) {
		disk := n.disk("fast", gibibyte)
		n.made(ctx, sized("600Mi"))
		volume := n.volume(ctx, sized("500Mi"))
		result := n.reconcile(ctx, volume)
		verdict, message := conditionOf(ctx, volume, stowagev1alpha1.ProvisionedCondition)
		Expect(verdict).To(Equal("False Exhausted"))
		Expect(message).To(ContainSubstring("500Mi is requested, and other volumes leave less of 1Gi (1Gi in all, 0 reserved)"))
		Expect(result.RequeueAfter).To(BeNumerically(">", 0))
		Expect(filepath.Join(disk, volume.Name)).NotTo(BeADirectory())
	})

	It("counts the volumes in other folders of the same disk", func(ctx context.Context) {
		disk := n.disk("shared", gibibyte)
		n.made(ctx, sized("600Mi"), at(filepath.Join(disk, "one")))
		volume := n.volume(ctx, sized("500Mi"), at(filepath.Join(disk, "two")))
		n.reconcile(ctx, volume)
		Expect(provisioned(ctx, volume)).To(Equal("False Exhausted"))
		elsewhere := n.disk("other", gibibyte)
		n.made(ctx, sized("500Mi"), at(elsewhere))
	})

	It("keeps the reserved capacity free", func(ctx context.Context) {
		n.disk("fast", gibibyte)
		volume := n.volume(ctx, sized("800Mi"), func(volume *stowagev1alpha1.NodeVolume) {
			volume.Spec.ReservedCapacity = new(resource.MustParse("300Mi"))
		})
		n.reconcile(ctx, volume)
		Expect(provisioned(ctx, volume)).To(Equal("False Exhausted"))
	})

	It("grows if there is room, and keeps what it has if there is none", func(ctx context.Context) {
		n.disk("fast", gibibyte)
		volume := n.made(ctx)
		for _, size := range []string{"800Mi", "2Gi"} {
			volume = read(ctx, volume)
			volume.Spec.Capacity = resource.MustParse(size)
			Expect(admin.Update(ctx, volume)).To(Succeed())
			n.reconcile(ctx, volume)
			Expect(read(ctx, volume).Status.Capacity.String()).To(Equal("800Mi"))
		}
		Expect(ready(ctx, volume)).To(Equal("True Ready"))
		verdict, message := conditionOf(ctx, volume, stowagev1alpha1.GrantedCondition)
		Expect(verdict).To(Equal("False Exhausted"))
		Expect(message).To(ContainSubstring("no room on the disk: 2Gi is requested"))
	})
})

var _ = Describe("A volume that was made", func() {
	It("keeps its room while it is lost, because its directory may come back", func(ctx context.Context) {
		n := newNode()
		n.disk("fast", gibibyte)
		volume, _ := n.made(ctx, sized("600Mi")), n.made(ctx)
		Expect(os.Remove(dir(volume))).To(Succeed())
		another := n.volume(ctx, sized("500Mi"))
		n.reconcile(ctx, another)
		Expect(provisioned(ctx, another)).To(Equal("False Exhausted"))
	})

	It("is lost when it is missing, and is never made again", func(ctx context.Context) {
		n := newNode()
		volume := n.made(ctx)
		Expect(os.Remove(dir(volume))).To(Succeed())
		n.reconcile(ctx, volume)
		Expect(ready(ctx, volume)).To(Equal("False Lost"))
		Expect(provisioned(ctx, volume)).To(Equal("True Ready"))
		Expect(dir(volume)).NotTo(BeADirectory())
		Expect(n.events.Events).To(Receive(HavePrefix("Warning Lost")))

		By("coming back with its disk")
		Expect(os.Mkdir(dir(volume), 0o777)).To(Succeed())
		n.reconcile(ctx, volume)
		Expect(ready(ctx, volume)).To(Equal("True Ready"))
	})

	It("is not made again when the cache is stale", func(ctx context.Context) {
		n := newNode()
		volume := n.volume(ctx)
		n.reconcile(ctx, volume)
		Expect(os.Remove(dir(volume))).To(Succeed())
		n.reconciler = volumeagent.NewReconciler(n.options(&staleClient{Client: n.api, seen: volume}))
		Expect(n.reconcile(ctx, volume).RequeueAfter).To(BeNumerically(">", 0))
		Expect(dir(volume)).NotTo(BeADirectory())
	})

	It("is not made again when the cache of the agent that made it is stale", func(ctx context.Context) {
		n := newNode()
		stale := &staleClient{Client: n.api}
		n.reconciler = volumeagent.NewReconciler(n.options(stale))
		n.made(ctx) // after that, a first attempt needs no live read
		volume := n.volume(ctx)
		stale.seen = volume
		n.reconcile(ctx, volume)
		Expect(provisioned(ctx, volume)).To(Equal("True Ready"))
		Expect(os.Remove(dir(volume))).To(Succeed())

		Expect(n.reconcile(ctx, volume).RequeueAfter).To(BeNumerically(">", 0))

		Expect(dir(volume)).NotTo(BeADirectory())
	})
})

var _ = Describe("Many volumes at once", func() {
	It("never get more than the disk has, and get what others release", func(ctx context.Context) {
		n := newNode()
		n.disk("fast", gibibyte)
		n.startManager()
		var volumes []*stowagev1alpha1.NodeVolume
		for range 15 {
			volumes = append(volumes, n.volume(ctx))
		}
		count := func(verdict string) func() int {
			return func() (count int) {
				for _, volume := range volumes {
					if again := read(ctx, volume); again != nil && again.DeletionTimestamp == nil && provisioned(ctx, volume) == verdict {
						count++
					}
				}
				return count
			}
		}
		Eventually(count("False Exhausted")).Should(Equal(5))
		Expect(count("True Ready")()).To(Equal(10))

		deleted := 0
		for _, volume := range volumes {
			if deleted < 3 && provisioned(ctx, volume) == "True Ready" {
				reclaim(ctx, volume)
				deleted++
			}
		}
		Eventually(count("True Ready")).Should(Equal(10))
		Expect(count("False Exhausted")()).To(Equal(2))
	})
})

var _ = Describe("Two volumes at once", func() {
	It("don't both get the room that only one can have, when one comes while the other counts", func(ctx context.Context) {
		n := newNode()
		path := n.disk("fast", 150<<20)
		first, done := n.volume(ctx, at(path)), make(chan struct{})
		var second *stowagev1alpha1.NodeVolume
		seen := &lateClient{Client: n.api, afterList: func() {
			second = n.volume(ctx, at(path))
			go func() {
				defer GinkgoRecover()
				defer close(done)
				n.reconcile(ctx, second)
			}()
			// It may have to wait for the first one, and mustn't be waited for then.
			select {
			case <-done:
			case <-time.After(time.Second):
			}
		}}
		n.reconciler = volumeagent.NewReconciler(n.options(seen))

		n.reconcile(ctx, first)
		Eventually(done).Should(BeClosed())

		Expect([]string{provisioned(ctx, first), provisioned(ctx, second)}).To(ConsistOf("True Ready", "False Exhausted"))
	})
})

// startManager starts the reconciler as the node agent does.
func (n *node) startManager() {
	GinkgoHelper()
	skip := true
	mgr, err := ctrl.NewManager(server.Config, ctrl.Options{
		Scheme: objects, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skip},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&stowagev1alpha1.NodeVolume{}: {Field: fields.OneTermEqualSelector("spec.nodeName", n.name)},
			&stowagev1alpha1.NodeDisk{}:   {Field: fields.OneTermEqualSelector("spec.nodeName", n.name)},
		}},
	})
	Expect(err).NotTo(HaveOccurred())
	options := n.options(mgr.GetClient())
	Expect(volumeagent.NewReconciler(options).SetupWithManager(mgr)).To(Succeed())
	Expect(diskagent.NewReconciler(options).SetupWithManager(mgr)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	DeferCleanup(func() {
		cancel()
		Eventually(ended).WithTimeout(time.Minute).Should(Receive(BeNil()))
	})
}

// staleClient reads one NodeVolume as it was, if there is one.
type staleClient struct {
	client.Client
	seen *stowagev1alpha1.NodeVolume
}

func (c *staleClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if c.seen == nil {
		return c.Client.Get(ctx, key, object, options...)
	}
	c.seen.DeepCopyInto(object.(*stowagev1alpha1.NodeVolume))
	return nil
}

// lateClient answers its first list after something else happened.
type lateClient struct {
	client.Client
	asked     atomic.Bool
	afterList func()
}

func (c *lateClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := c.Client.List(ctx, list, options...)
	if !c.asked.Swap(true) {
		c.afterList()
	}
	return err
}
