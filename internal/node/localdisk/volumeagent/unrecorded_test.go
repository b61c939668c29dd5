package volumeagent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/diskagent"
)

const recordName = "trusted.stowage.volume"

// lose has a NodeVolume go, and not its data: its finalizer is forced off.
func lose(ctx context.Context, volume *stowagev1alpha1.NodeVolume) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(admin.Delete(ctx, volume))).To(Succeed())
	forced := read(ctx, volume)
	forced.Finalizers = nil
	Expect(admin.Update(ctx, forced)).To(Succeed())
	Expect(read(ctx, volume)).To(BeNil())
}

// entry is what a NodeDisk lists of a volume.
func entry(volume *stowagev1alpha1.NodeVolume, layout stowagev1alpha1.LocalLayout) stowagev1alpha1.UnrecordedVolume {
	claim := volume.Spec.ClaimRef
	return stowagev1alpha1.UnrecordedVolume{
		ID: volume.Name, ClaimNamespace: claim.Namespace, ClaimName: claim.Name, ClaimUID: claim.UID, Layout: layout,
	}
}

var _ = Describe("A volume without its NodeVolume", func() {
	var n *node
	BeforeEach(func() {
		n = newNode()
		n.disk("fast", gibibyte)
	})

	It("is found on the disk, with its owner", func(ctx context.Context) {
		lost, kept := n.made(ctx), n.made(ctx)
		Expect(n.inspected(ctx).Status.Unrecorded).To(Equal(&stowagev1alpha1.UnrecordedVolumes{}))
		lose(ctx, lost)

		disk := n.inspected(ctx)

		Expect(disk.Status.Unrecorded).To(Equal(&stowagev1alpha1.UnrecordedVolumes{
			Count: 1, Volumes: []stowagev1alpha1.UnrecordedVolume{entry(lost, stowagev1alpha1.LayoutDirectory)},
		}))
		Expect(n.inspected(ctx).ResourceVersion).To(Equal(disk.ResourceVersion))
		Expect(dir(lost)).To(BeADirectory())
		Expect(dir(kept)).To(BeADirectory())
	})

	It("is found without an owner, where its record is missing, another's or no record", func(ctx context.Context) {
		volume := n.made(ctx)
		lose(ctx, volume)
		for _, record := range []string{"", "{", `{"id":"pvc-other","claim":{"uid":"other"},"layout":"Image"}`, string(make([]byte, 1024)), string(make([]byte, 4000))} {
			Expect(unix.Setxattr(dir(volume), recordName, []byte(record), 0)).To(Succeed())
			Expect(n.inspected(ctx).Status.Unrecorded.Volumes).To(ConsistOf(stowagev1alpha1.UnrecordedVolume{ID: volume.Name}))
		}
		Expect(unix.Removexattr(dir(volume), recordName)).To(Succeed())
		Expect(n.inspected(ctx).Status.Unrecorded.Volumes).To(ConsistOf(stowagev1alpha1.UnrecordedVolume{ID: volume.Name}))
	})

	It("gets a record, if an older version made it", func(ctx context.Context) {
		volume := n.made(ctx)
		Expect(unix.Removexattr(dir(volume), recordName)).To(Succeed())
		n.reconcile(ctx, volume)
		lose(ctx, volume)
		Expect(n.inspected(ctx).Status.Unrecorded.Volumes).To(ConsistOf(entry(volume, stowagev1alpha1.LayoutDirectory)))
	})

	It("is counted with all others, and named with the first of them", func(ctx context.Context) {
		volume := n.made(ctx)
		folder := filepath.Dir(dir(volume))
		for i := range 10 * stowagev1alpha1.MaxUnrecorded {
			Expect(os.Mkdir(filepath.Join(folder, fmt.Sprintf("pvc-%05d", i)), 0o700)).To(Succeed())
		}
		for _, other := range []string{"notes", ".new-pvc-1", "pvc-", "pvc-A", "pvc-1-"} {
			Expect(os.Mkdir(filepath.Join(folder, other), 0o700)).To(Succeed())
		}
		Expect(os.WriteFile(filepath.Join(folder, "pvc-file"), nil, 0o600)).To(Succeed())
		Expect(os.Symlink("/", filepath.Join(folder, "pvc-0-link"))).To(Succeed())

		found := n.inspected(ctx).Status.Unrecorded

		Expect(found.Count).To(BeNumerically("~", 10*stowagev1alpha1.MaxUnrecorded, 1))
		Expect(found.Volumes).To(HaveLen(stowagev1alpha1.MaxUnrecorded))
		Expect(found.Volumes[0].ID).To(Equal("pvc-00000"))
	})

	It("is known while its disk is away, and not found on the disk that takes its place", func(ctx context.Context) {
		volume := n.made(ctx)
		lose(ctx, volume)
		old := n.inspected(ctx)
		Expect(kernel.Unmount(string(old.Spec.Path))).To(Succeed())
		n.disk("fast", gibibyte)

		Expect(n.inspected(ctx).Status.Unrecorded.Count).To(BeEquivalentTo(1))
		replace(ctx, n.inspected(ctx), old.Status.Identity.ID)
		Expect(n.inspected(ctx).Status.Unrecorded.Count).To(BeZero())
	})

	It("isn't listed before a disk is accepted", func(ctx context.Context) {
		Expect(os.Mkdir(filepath.Join(n.base, "fast", "pvc-1"), 0o700)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(n.base, "fast", markerFile), []byte(`{"id":"1","backend":"other"}`), 0o600)).To(Succeed())
		n.ensureDisk(ctx, "fast", filepath.Join(n.base, "fast"))
		Expect(n.inspected(ctx).Status.Unrecorded).To(BeNil())
	})

	It("isn't found while it is removed, though the folder was read before", func(ctx context.Context) {
		volume := n.made(ctx)
		reclaim(ctx, volume)
		removing := &removedDuringList{Client: n.api, after: 1, remove: func() { n.pass(ctx, volume) }}
		n.disks = diskagent.NewReconciler(n.options(removing))
		Expect(n.inspected(ctx).Status.Unrecorded.Count).To(BeZero())
		Expect(read(ctx, volume)).To(BeNil())
	})

	It("has its NodeVolume again, with its data", func(ctx context.Context) {
		volume := n.made(ctx)
		Expect(os.WriteFile(filepath.Join(dir(volume), "hello"), nil, 0o600)).To(Succeed())
		lose(ctx, volume)

		again := n.again(ctx, volume)
		n.reconcile(ctx, again)

		Expect(ready(ctx, again)).To(Equal("True Ready"))
		Expect(read(ctx, again).Status.Path).To(Equal(dir(volume)))
		Expect(filepath.Join(dir(volume), "hello")).To(BeAnExistingFile())
		Expect(n.inspected(ctx).Status.Unrecorded.Count).To(BeZero())
	})

	It("has its image again, with what was written to it", func(ctx context.Context) {
		volume := n.made(ctx, image("ext4"), sized("16Mi"))
		before, err := os.ReadFile(imagePath(volume))
		Expect(err).NotTo(HaveOccurred())
		lose(ctx, volume)
		Expect(n.inspected(ctx).Status.Unrecorded.Volumes).To(ConsistOf(entry(volume, stowagev1alpha1.LayoutImage)))

		again := n.again(ctx, volume)
		n.reconcile(ctx, again)

		Expect(ready(ctx, again)).To(Equal("True Ready"))
		Expect(os.ReadFile(imagePath(volume))).To(Equal(before))
	})

	It("is never made again empty, where it isn't on the disk", func(ctx context.Context) {
		volume := n.made(ctx)
		lose(ctx, volume)
		Expect(os.Remove(dir(volume))).To(Succeed())

		again := n.again(ctx, volume)
		n.reconcile(ctx, again)

		Expect(provisioned(ctx, again)).To(Equal("False Lost"))
		Expect(dir(volume)).NotTo(BeADirectory())
		reclaim(ctx, read(ctx, again))
		n.reconcile(ctx, again)
		Expect(read(ctx, again)).To(BeNil())
	})

	It("isn't adopted by a NodeVolume of another layout", func(ctx context.Context) {
		volume := n.made(ctx)
		Expect(os.WriteFile(filepath.Join(dir(volume), stowagev1alpha1.ImageFile), make([]byte, 4096), 0o600)).To(Succeed())
		lose(ctx, volume)
		volume.Spec.Layout = stowagev1alpha1.LayoutImage

		again := n.again(ctx, volume)
		n.reconcile(ctx, again)

		verdict, message := conditionOf(ctx, again, stowagev1alpha1.ProvisionedCondition)
		Expect(verdict).To(Equal("False Invalid"))
		Expect(message).To(ContainSubstring("layout Directory"))
	})

	It("stays where it is while its disk isn't accepted", func(ctx context.Context) {
		volume := n.made(ctx)
		lose(ctx, volume)
		Expect(admin.Delete(ctx, n.inspected(ctx))).To(Succeed())
		Expect(os.WriteFile(filepath.Join(n.base, "fast", markerFile), []byte(`{"id":"1","backend":"other"}`), 0o600)).To(Succeed())
		n.ensureDisk(ctx, "fast", filepath.Join(n.base, "fast"))

		again := n.again(ctx, volume)
		n.reconcile(ctx, again)

		Expect(provisioned(ctx, again)).To(HavePrefix("False "))
	})
})

// removedDuringList has something removed before it lists NodeVolumes for the second
// time: a pass lists them once for the room of the disk.
type removedDuringList struct {
	client.Client
	after  int
	remove func()
}

func (c *removedDuringList) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, volumes := list.(*stowagev1alpha1.NodeVolumeList); volumes {
		if c.after == 0 {
			c.remove()
		}
		c.after--
	}
	return c.Client.List(ctx, list, options...)
}

// pass reconciles a volume once, and not its disk.
func (n *node) pass(ctx context.Context, volume *stowagev1alpha1.NodeVolume) {
	GinkgoHelper()
	_, err := n.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(volume)})
	Expect(err).NotTo(HaveOccurred())
}
