package volumeagent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/exec"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/node/localdisk"
	"github.com/stowage-dev/stowage/internal/node/localdisk/diskagent"
	"github.com/stowage-dev/stowage/internal/node/localdisk/store"
	"github.com/stowage-dev/stowage/internal/node/localdisk/volumeagent"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/specs"
)

var (
	server  *apiserver.Server
	objects = runtime.NewScheme()
	admin   client.Client
	kernel  = mount.Kernel{}
)

func TestMain(m *testing.M) { mounttest.Main(m) }

func TestNodeVolumes(t *testing.T) {
	specs.Run(t, "local volumes")
}

var _ = BeforeSuite(func() {
	SetDefaultEventuallyTimeout(15 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	ctrl.SetLogger(GinkgoLogr)
	Expect(stowagev1alpha1.AddToScheme(objects)).To(Succeed())
	var err error
	server, err = apiserver.Start(apiserver.Options{OneByOne: true, Rights: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	admin, err = client.New(server.Config, client.Options{Scheme: objects})
	Expect(err).NotTo(HaveOccurred())
})

// node is one node with a base directory, a spec's own.
type node struct {
	name, base string
	// api has the rights of the node's agent.
	api client.Client
	// live are its live reads: those of api, unless a spec counts them.
	live       client.Reader
	reconciler *volumeagent.Reconciler
	disks      *diskagent.Reconciler
	events     *events.FakeRecorder
}

func newNode() *node {
	GinkgoHelper()
	dir, err := filepath.EvalSymlinks(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	n := &node{name: "node-" + string(uuid.NewUUID()), base: filepath.Join(dir, "base"), events: events.NewFakeRecorder(100)}
	Expect(os.Mkdir(n.base, 0o755)).To(Succeed())
	DeferCleanup(func() { Expect(mount.UnmountBelow(kernel, dir)).To(Succeed()) })
	n.api, err = client.New(server.As(apiserver.Agent(n.name)), client.Options{Scheme: objects, Mapper: admin.RESTMapper()})
	Expect(err).NotTo(HaveOccurred())
	n.live = n.api
	DeferCleanup(n.remove)
	n.reconciler = volumeagent.NewReconciler(n.options(n.api))
	n.disks = diskagent.NewReconciler(n.options(n.api))
	return n
}

// remove removes the node's objects: each list costs as much as all nodes have.
func (n *node) remove(ctx context.Context) {
	GinkgoHelper()
	ofNode := client.MatchingFields{"spec.nodeName": n.name}
	Expect(admin.DeleteAllOf(ctx, &stowagev1alpha1.NodeDisk{}, ofNode)).To(Succeed())
	Expect(admin.DeleteAllOf(ctx, &stowagev1alpha1.NodeVolume{}, ofNode)).To(Succeed())
	kept := &stowagev1alpha1.NodeVolumeList{}
	Expect(admin.List(ctx, kept, ofNode)).To(Succeed())
	for i := range kept.Items {
		before := kept.Items[i].DeepCopy()
		kept.Items[i].Finalizers = nil
		Expect(client.IgnoreNotFound(admin.Patch(ctx, &kept.Items[i], client.MergeFrom(before)))).To(Succeed())
	}
}

// options are those of a reconciler that sees NodeVolumes through a client.
func (n *node) options(seen client.Client) localdisk.Options {
	return localdisk.Options{
		NodeName: n.name, Store: store.NewStore(n.base, filesystem.NewFileSystems(exec.New())),
		Client: seen, Live: n.live, Events: n.events,
	}
}

// volume creates a NodeVolume as the manager does.
func (n *node) volume(ctx context.Context, options ...func(*stowagev1alpha1.NodeVolume)) *stowagev1alpha1.NodeVolume {
	GinkgoHelper()
	uid := uuid.NewUUID()
	volume := &stowagev1alpha1.NodeVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(uid), Finalizers: []string{stowagev1alpha1.NodeVolumeFinalizer}},
		Spec: stowagev1alpha1.NodeVolumeSpec{
			NodeName: n.name, Backend: "fast",
			Path:     stowagev1alpha1.AbsolutePath(filepath.Join(n.base, "fast")),
			Capacity: resource.MustParse("100Mi"),
			ClaimRef: stowagev1alpha1.ClaimReference{Namespace: "default", Name: "data", UID: uid},
		},
	}
	for _, option := range options {
		option(volume)
	}
	n.ensureDisk(ctx, volume.Spec.Backend, string(volume.Spec.Path))
	Expect(admin.Create(ctx, volume)).To(Succeed())
	return volume
}

// nodeDisks are those of the node.
func (n *node) nodeDisks(ctx context.Context) []stowagev1alpha1.NodeDisk {
	GinkgoHelper()
	disks := &stowagev1alpha1.NodeDiskList{}
	Expect(admin.List(ctx, disks, client.MatchingFields{"spec.nodeName": n.name})).To(Succeed())
	return disks.Items
}

// ensureDisk creates the NodeDisk of a backend's folder, as the manager does.
func (n *node) ensureDisk(ctx context.Context, backend, path string) {
	GinkgoHelper()
	for _, disk := range n.nodeDisks(ctx) {
		if disk.Spec.Backend == backend && string(disk.Spec.Path) == path {
			return
		}
	}
	Expect(admin.Create(ctx, &stowagev1alpha1.NodeDisk{
		ObjectMeta: metav1.ObjectMeta{GenerateName: backend + "-"},
		Spec:       stowagev1alpha1.NodeDiskSpec{NodeName: n.name, Backend: backend, Path: stowagev1alpha1.AbsolutePath(path)},
	})).To(Succeed())
}

// reconcileDisks reconciles all disks once.
func (n *node) reconcileDisks(ctx context.Context) {
	GinkgoHelper()
	for i := range n.nodeDisks(ctx) {
		n.reconcileDisk(ctx, &n.nodeDisks(ctx)[i])
	}
}

// reconcileDisk reconciles a disk once.
func (n *node) reconcileDisk(ctx context.Context, disk *stowagev1alpha1.NodeDisk) {
	GinkgoHelper()
	_, err := n.disks.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(disk)})
	Expect(err).NotTo(HaveOccurred())
}

func sized(size string) func(*stowagev1alpha1.NodeVolume) {
	return func(volume *stowagev1alpha1.NodeVolume) { volume.Spec.Capacity = resource.MustParse(size) }
}

func at(path string) func(*stowagev1alpha1.NodeVolume) {
	return func(volume *stowagev1alpha1.NodeVolume) { volume.Spec.Path = stowagev1alpha1.AbsolutePath(path) }
}

// made creates a NodeVolume, and its volume.
func (n *node) made(ctx context.Context, options ...func(*stowagev1alpha1.NodeVolume)) *stowagev1alpha1.NodeVolume {
	GinkgoHelper()
	volume := n.volume(ctx, options...)
	n.reconcile(ctx, volume)
	Expect(ready(ctx, volume)).To(Equal("True Ready"))
	return volume
}

// reconcile reconciles the disks, and then a volume.
func (n *node) reconcile(ctx context.Context, volume *stowagev1alpha1.NodeVolume) ctrl.Result {
	GinkgoHelper()
	n.reconcileDisks(ctx)
	result, err := n.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(volume)})
	Expect(err).NotTo(HaveOccurred())
	return result
}

// dir is where a volume lies.
func dir(volume *stowagev1alpha1.NodeVolume) string {
	return filepath.Join(string(volume.Spec.Path), volume.Name)
}

// read reads a volume again; nil if it is gone.
func read(ctx context.Context, volume *stowagev1alpha1.NodeVolume) *stowagev1alpha1.NodeVolume {
	GinkgoHelper()
	again := &stowagev1alpha1.NodeVolume{}
	err := admin.Get(ctx, types.NamespacedName{Name: volume.Name}, again)
	if client.IgnoreNotFound(err) == nil && err != nil {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return again
}

// conditionOf returns a condition: "<status> <reason>" and its message.
func conditionOf(ctx context.Context, volume *stowagev1alpha1.NodeVolume, kind string) (verdict, message string) {
	GinkgoHelper()
	again := read(ctx, volume)
	Expect(again).NotTo(BeNil())
	condition := meta.FindStatusCondition(again.Status.Conditions, kind)
	if condition == nil {
		return "", ""
	}
	Expect(condition.ObservedGeneration).To(Equal(again.Generation))
	return fmt.Sprintf("%s %s", condition.Status, condition.Reason), condition.Message
}

func ready(ctx context.Context, volume *stowagev1alpha1.NodeVolume) string {
	GinkgoHelper()
	verdict, _ := conditionOf(ctx, volume, stowagev1alpha1.ReadyCondition)
	return verdict
}

func provisioned(ctx context.Context, volume *stowagev1alpha1.NodeVolume) string {
	GinkgoHelper()
	verdict, _ := conditionOf(ctx, volume, stowagev1alpha1.ProvisionedCondition)
	return verdict
}

// needsMounts skips a spec if this process can't mount, nor open loop devices, nor read the records of volumes.
func needsMounts() {
	if !mounttest.MayMount() {
		Skip("NOT RUN: needs root, and a mount namespace of its own, to mount")
	}
}

// disk mounts a disk of some size at a folder below the base.
func (n *node) disk(name string, bytes int64) string {
	GinkgoHelper()
	needsMounts()
	path := filepath.Join(n.base, name)
	Expect(os.MkdirAll(path, 0o700)).To(Succeed())
	Expect(kernel.Tmpfs(path, mount.TmpfsOptions{Bytes: bytes, Mode: 0o700})).To(Succeed())
	return path
}

// reclaim does what the manager does after the claim of a volume is gone.
func reclaim(ctx context.Context, volume *stowagev1alpha1.NodeVolume) {
	GinkgoHelper()
	before := volume.DeepCopy()
	volume.Spec.RemoveData = true
	Expect(admin.Patch(ctx, volume, client.MergeFrom(before))).To(Succeed())
	Expect(admin.Delete(ctx, volume)).To(Succeed())
}
