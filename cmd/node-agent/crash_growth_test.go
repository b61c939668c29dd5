package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

// growing is a volume that the agent made, mounted by a pod, and asked to grow.
type growing struct {
	*process
	api   client.Client
	local *stowagev1alpha1.NodeVolume
	claim *corev1.PersistentVolumeClaim
	bytes int64
}

// smallest is what an xfs needs: the type that every root may grow. Each growth adds
// as much as makes a difference to it.
const (
	smallest = 300 * mebibyte
	step     = 100 * mebibyte
	most     = smallest + 100*step
)

// newGrowth has a running agent make a volume, and mount it for a pod.
func newGrowth(t *testing.T) *growing {
	t.Helper()
	server := startServer(t)
	g := &growing{process: newProcess(t, server), api: clientOf(t, server.Config), bytes: smallest}
	createNode(t, g.client)
	// The claim asks for all that it will get, as one does that grows: it is looked at
	// soon, and not every minute.
	g.claim = g.createClaim(t, "data", corev1.PersistentVolumeFilesystem, most)
	g.claim.Spec.Resources.Requests = storage(g.bytes)
	g.local = &stowagev1alpha1.NodeVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(g.claim.UID)},
		Spec: stowagev1alpha1.NodeVolumeSpec{
			NodeName: "n1", Backend: "fast", Path: stowagev1alpha1.AbsolutePath(filepath.Join(filepath.Dir(g.root), "base")),
			Capacity: *resource.NewQuantity(g.bytes, resource.BinarySI), VolumeMode: corev1.PersistentVolumeFilesystem,
			Layout: stowagev1alpha1.LayoutImage, FSType: "xfs", Allocation: stowagev1alpha1.AllocationSparse,
			ClaimRef: stowagev1alpha1.ClaimReference{Namespace: "default", Name: "data", UID: g.claim.UID},
		},
	}
	disk := &stowagev1alpha1.NodeDisk{
		ObjectMeta: metav1.ObjectMeta{Name: g.local.Spec.Backend + ".n1"},
		Spec:       stowagev1alpha1.NodeDiskSpec{NodeName: "n1", Backend: g.local.Spec.Backend, Path: g.local.Spec.Path},
	}
	for _, object := range []client.Object{disk, g.local} {
		if err := g.api.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	g.start(t)
	await(t, "the volume is made", func() bool { g.read(t, g.local); return g.local.Status.Path != "" })
	g.bindTo(t, g.claim, g.local.Status.Path)
	if _, err := g.client.CoreV1().Pods("default").Create(t.Context(), podWith("web", "data"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "it is mounted", func() bool { return g.seen() != "" })
	return g
}

func (g *growing) read(t *testing.T, object client.Object) {
	t.Helper()
	if err := g.api.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
}

func (g *growing) image() string {
	return filepath.Join(g.local.Status.Path, stowagev1alpha1.ImageFile)
}

// seen is where the pod sees the volume, "" if it doesn't.
func (g *growing) seen() string {
	mounts, _ := filepath.Glob(filepath.Join(g.root, "pods", "*", "volumes", "kubernetes.io~csi", "data", "mount"))
	if len(mounts) != 1 || roomIn(mounts[0]) == roomIn(g.root) {
		return ""
	}
	return mounts[0]
}

func roomIn(path string) int64 {
	var stat unix.Statfs_t
	_ = unix.Statfs(path, &stat)
	return int64(stat.Blocks) * stat.Frsize
}

// ask asks for more, as a manager does: of the agent first, which has to be running,
// then of the node.
func (g *growing) ask(t *testing.T) {
	t.Helper()
	g.bytes += step
	g.read(t, g.local)
	before := g.local.DeepCopy()
	g.local.Spec.Capacity = *resource.NewQuantity(g.bytes, resource.BinarySI)
	// The agent may just be writing the status.
	if err := g.api.Patch(t.Context(), g.local, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	await(t, "the image has grown", func() bool {
		info, err := os.Stat(g.image())
		return err == nil && info.Size() == g.bytes
	})
}

// leaveToNode says in the claim that the file system has yet to grow.
func (g *growing) leaveToNode(t *testing.T) {
	t.Helper()
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	g.read(t, volume)
	volume.Spec.Capacity = storage(g.bytes)
	if err := g.api.Update(t.Context(), volume); err != nil {
		t.Fatal(err)
	}
	g.read(t, g.claim)
	g.claim.Status.AllocatedResources = storage(g.bytes)
	g.claim.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{
		corev1.ResourceStorage: corev1.PersistentVolumeClaimNodeResizePending,
	}
	if err := g.api.Status().Update(t.Context(), g.claim); err != nil {
		t.Fatal(err)
	}
}

// awaitGrown waits until the claim, and the pod, have what was asked for.
func (g *growing) awaitGrown(t *testing.T) {
	t.Helper()
	await(t, "the claim has what it asked for", func() bool {
		g.read(t, g.claim)
		return g.claim.Status.Capacity.Storage().Value() == g.bytes && len(g.claim.Status.AllocatedResourceStatuses) == 0
	})
	if room := roomIn(g.seen()); room < g.bytes-step {
		t.Errorf("the pod has %d of %d bytes", room, g.bytes)
	}
}

func TestTheGrowthOfStorageWakesWhatGrowsItsFileSystem(t *testing.T) {
	mounttest.NeedsRoot(t)
	g := newGrowth(t)
	g.ask(t)
	g.leaveToNode(t)
	g.awaitGrown(t)
}

func TestTheLossOfANodeVolumeIsReportedOnItsPod(t *testing.T) {
	mounttest.NeedsRoot(t)
	g := newGrowth(t)
	if err := os.Remove(g.image()); err != nil {
		t.Fatal(err)
	}
	// The agent looks whether the disk has it still.
	g.read(t, g.local)
	g.local.Labels = map[string]string{"example.com/look": "now"}
	if err := g.api.Update(t.Context(), g.local); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	await(t, "the loss is reported on the pod", func() bool {
		g.read(t, pod)
		return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == stowagev1alpha1.VolumesReadyCondition && strings.Contains(condition.Message, "image was removed")
		})
	})
}

func TestAnAgentThatIsKilledWhileAFileSystemGrowsFinishesIt(t *testing.T) {
	mounttest.NeedsRoot(t)
	g := newGrowth(t)
	reached := map[string]func(before int64) bool{
		"it starts": func(int64) bool { return true },
		"the claim says it has begun": func(int64) bool {
			g.read(t, g.claim)
			return g.claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] != corev1.PersistentVolumeClaimNodeResizePending
		},
		"the device has grown":      func(int64) bool { return g.shown(t) == g.bytes },
		"the file system has grown": func(before int64) bool { return roomIn(g.seen()) > before },
	}
	for name, isReached := range reached {
		t.Log(name)
		before := roomIn(g.seen())
		g.ask(t)
		g.kill()
		g.leaveToNode(t)
		g.start(t)
		await(t, name, func() bool { return isReached(before) })
		g.kill()
		g.start(t)
		g.awaitGrown(t)
	}
	deleteAll(t.Context(), t, g.client)
	await(t, "nothing is left on the node", func() bool { return g.podDirs() == 0 && g.mounted(t) == 0 })
	if loop := g.loopOf(t, g.image()); loop != nil {
		t.Errorf("%s is still attached", loop.Path())
	}
}

// shown is how large the loop device of the image is.
func (g *growing) shown(t *testing.T) int64 {
	t.Helper()
	loop := g.loopOf(t, g.image())
	if loop == nil {
		return 0
	}
	defer loop.Close()
	device, err := os.Open(loop.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	end, err := device.Seek(0, 2)
	if err != nil {
		t.Fatal(err)
	}
	return end
}
