package integration_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/local"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/node/localdisk"
	"github.com/stowage-dev/stowage/internal/node/localdisk/diskagent"
	"github.com/stowage-dev/stowage/internal/node/localdisk/store"
	"github.com/stowage-dev/stowage/internal/node/localdisk/volumeagent"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

const (
	gibibyte = 1 << 30
	mebibyte = 1 << 20
	// spare is what a disk has beyond the volumes that fit: names take room, too.
	spare = 16 << 20
)

func TestMain(m *testing.M) { mounttest.Main(m) }

var _ = Describe("With the whole manager running, and the agents of several nodes", Ordered, func() {
	var base string

	BeforeEach(func() {
		if !mounttest.MayMount() {
			Skip("NOT RUN: needs root, and a mount namespace of its own, to mount")
		}
		var err error
		base, err = filepath.EvalSymlinks(GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		storage := clientOf(asManager(reconciler.ClusterScope))
		kind := local.NewKind(storage, storage, base)
		manager{scope: reconciler.ClusterScope, kinds: []backend.Kind{kind}, namespace: apiserver.Namespace}.start()
	})

	It("as many of forty claims get a volume as there is room for, and no node gives more than it has", func(ctx SpecContext) {
		rooms := map[string]int64{"node-a": 4, "node-b": 5, "node-c": 6}
		for node, room := range rooms {
			startDiskAgent(ctx, agent{node: node, base: base}, room*gibibyte+spare)
		}
		// While the agents run: nothing else removes volumes.
		DeferCleanup(removeEverything)
		create(ctx, LocalBackend("disks", onDisks(base, storagev1.VolumeBindingImmediate)))
		for i := range 40 {
			create(ctx, Claim(ClaimNamed(name("many", i)), InClass("disks")))
		}

		Eventually(boundClaims).WithArguments(ctx).WithTimeout(clearing).Should(Equal(15))
		Eventually(func(g Gomega) {
			g.Expect(given(ctx)).To(Equal(rooms))
			g.Expect(waitingFor(ctx, "room for 1Gi")).To(Equal(25))
		}).WithTimeout(2 * clearing).WithPolling(200 * time.Millisecond).Should(Succeed())
		Consistently(boundClaims).WithArguments(ctx).WithTimeout(time.Second).Should(Equal(15))
	})

	It("the scheduler has the room that is left, until the node or the backend is gone", func(ctx SpecContext) {
		for _, node := range []string{"node-a", "node-b"} {
			startDiskAgent(ctx, agent{node: node, base: base}, 300*mebibyte)
		}
		DeferCleanup(removeEverything)
		object := LocalBackend("disks", onDisks(base, storagev1.VolumeBindingWaitForFirstConsumer))
		create(ctx, object)
		eventuallyPublished(ctx, "node-a 299Mi", "node-b 299Mi")

		Expect(os.WriteFile(filepath.Join(base, "node-a", "disks", "filler"), make([]byte, 100*mebibyte), 0o600)).To(Succeed())
		eventuallyPublished(ctx, "node-a 199Mi", "node-b 299Mi")

		Expect(users.Delete(ctx, Node("node-a"))).To(Succeed())
		eventuallyPublished(ctx, "node-b 299Mi")
		Expect(users.Delete(ctx, object)).To(Succeed())
		eventuallyPublished(ctx)
		Eventually(func(g Gomega) {
			disks := &stowagev1alpha1.NodeDiskList{}
			g.Expect(users.List(ctx, disks)).To(Succeed())
			g.Expect(disks.Items).To(BeEmpty())
		}).WithTimeout(soon).Should(Succeed())
	})
})

// onDisks puts a backend below a base, with a class that binds so.
func onDisks(base string, mode storagev1.VolumeBindingMode) func(*stowagev1alpha1.StorageBackend) {
	return func(object *stowagev1alpha1.StorageBackend) {
		object.Spec.Local.Path = stowagev1alpha1.AbsolutePath(filepath.Join(base, "disks"))
		object.Spec.StorageClass.VolumeBindingMode = mode
	}
}

// given is how many GiB the volumes of each node have.
func given(ctx context.Context) map[string]int64 {
	GinkgoHelper()
	volumes := &stowagev1alpha1.NodeVolumeList{}
	Expect(users.List(ctx, volumes)).To(Succeed())
	given := map[string]int64{}
	for _, volume := range volumes.Items {
		if volume.Status.Capacity != nil {
			given[volume.Spec.NodeName] += volume.Status.Capacity.Value() / gibibyte
		}
	}
	return given
}

// waitingFor counts the claims that say they wait for something.
func waitingFor(ctx context.Context, what string) int {
	GinkgoHelper()
	claims := &corev1.PersistentVolumeClaimList{}
	Expect(users.List(ctx, claims)).To(Succeed())
	waiting := 0
	for _, claim := range claims.Items {
		if slices.ContainsFunc(claim.Status.Conditions, func(condition corev1.PersistentVolumeClaimCondition) bool {
			return condition.Type == stowagev1alpha1.BindableCondition && strings.Contains(condition.Message, what)
		}) {
			waiting++
		}
	}
	return waiting
}

// eventuallyPublished expects a CSIStorageCapacity of each of these nodes.
func eventuallyPublished(ctx context.Context, wanted ...string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		capacities := &storagev1.CSIStorageCapacityList{}
		g.Expect(users.List(ctx, capacities)).To(Succeed())
		var published []string
		for _, capacity := range capacities.Items {
			published = append(published, capacity.NodeTopology.MatchLabels[stowagev1alpha1.TopologyNodeLabel]+" "+capacity.Capacity.String())
		}
		g.Expect(published).To(ConsistOf(wanted))
	}).WithContext(ctx).WithTimeout(3 * soon).Should(Succeed())
}

// agent is a client through which the agent of one of several nodes on this machine
// sees the backend's folder as one of its own.
type agent struct {
	client.Client
	node, base string
}

// startDiskAgent registers a node, mounts its disk, and runs its agent until the spec ends.
func startDiskAgent(ctx context.Context, of agent, bytes int64) {
	GinkgoHelper()
	disk := filepath.Join(of.base, of.node, "disks")
	Expect(os.MkdirAll(disk, 0o700)).To(Succeed())
	Expect(mount.Kernel{}.Tmpfs(disk, mount.TmpfsOptions{Bytes: bytes, Mode: 0o700})).To(Succeed())
	DeferCleanup(func() { Expect(mount.Kernel{}.Unmount(disk)).To(Succeed()) })
	create(ctx, Node(of.node))
	skipNames, ofNode := true, cache.ByObject{Field: fields.OneTermEqualSelector("spec.nodeName", of.node)}
	mgr, err := ctrl.NewManager(server.As(apiserver.Agent(of.node)), ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: &skipNames},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{&stowagev1alpha1.NodeVolume{}: ofNode, &stowagev1alpha1.NodeDisk{}: ofNode}},
	})
	Expect(err).NotTo(HaveOccurred())
	of.Client = mgr.GetClient()
	options := localdisk.Options{
		NodeName: of.node, Store: store.NewStore(filepath.Join(of.base, of.node), filesystem.FileSystems{}),
		Client: of, Live: agent{clientOf(mgr.GetConfig()), of.node, of.base}, Events: mgr.GetEventRecorder("stowage-node-agent"),
	}
	Expect(volumeagent.NewReconciler(options).SetupWithManager(mgr)).To(Succeed())
	Expect(diskagent.NewReconciler(options).SetupWithManager(mgr)).To(Succeed())
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	stopped := make(chan struct{})
	go func() { defer close(stopped); _ = mgr.Start(running) }()
	DeferCleanup(func() { stop(); <-stopped })
}

func (a agent) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := a.Client.Get(ctx, key, object, options...)
	a.see(object)
	return err
}

func (a agent) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := a.Client.List(ctx, list, options...)
	if err == nil {
		err = meta.EachListItem(list, func(object runtime.Object) error { a.see(object); return nil })
	}
	return err
}

func (a agent) see(object runtime.Object) {
	seen := stowagev1alpha1.AbsolutePath(filepath.Join(a.base, a.node, "disks"))
	switch typed := object.(type) {
	case *stowagev1alpha1.NodeVolume:
		typed.Spec.Path = seen
	case *stowagev1alpha1.NodeDisk:
		typed.Spec.Path = seen
	}
}
