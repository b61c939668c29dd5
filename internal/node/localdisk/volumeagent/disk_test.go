package volumeagent_test

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

const markerFile = ".stowage-disk"

// looked passes once over the node's one disk, and returns it.
func (n *node) looked(ctx context.Context) *stowagev1alpha1.NodeDisk {
	GinkgoHelper()
	n.lookAtDisks(ctx)
	disks := n.nodeDisks(ctx)
	Expect(disks).To(HaveLen(1))
	return &disks[0]
}

// verdict is what a condition of a disk says: "<status> <reason>", and its message.
func verdict(disk *stowagev1alpha1.NodeDisk, kind string) (says, message string) {
	GinkgoHelper()
	condition := meta.FindStatusCondition(disk.Status.Conditions, kind)
	Expect(condition).NotTo(BeNil())
	Expect(condition.ObservedGeneration).To(Equal(disk.Generation))
	return string(condition.Status) + " " + condition.Reason, condition.Message
}

func expectDisk(disk *stowagev1alpha1.NodeDisk, says string, messages ...string) {
	GinkgoHelper()
	verdict, message := verdict(disk, stowagev1alpha1.ReadyCondition)
	Expect(verdict).To(Equal(says), message)
	for _, part := range messages {
		Expect(message).To(ContainSubstring(part))
	}
}

// replace gives up a disk, as a person does.
func replace(ctx context.Context, disk *stowagev1alpha1.NodeDisk, id string) {
	GinkgoHelper()
	before := disk.DeepCopy()
	disk.Spec.Replaces = id
	Expect(admin.Patch(ctx, disk, client.MergeFrom(before))).To(Succeed())
}

var _ = Describe("A disk", func() {
	var n *node
	BeforeEach(func() { n = newNode() })

	It("is accepted with a marker of its own, and says what room it has", func(ctx context.Context) {
		path := n.disk("fast", gibibyte)
		n.ensureDisk(ctx, "fast", path)
		n.made(ctx, asking("300Mi"))
		disk := n.looked(ctx)

		expectDisk(disk, "True Ready")
		Expect(os.ReadFile(filepath.Join(path, markerFile))).To(ContainSubstring(disk.Status.Identity.ID))
		Expect(disk.Status.Total.String()).To(Equal("1Gi"))
		Expect(disk.Status.Given.String()).To(Equal("300Mi"))
		// What the marker and the directories take up is not there for volumes.
		Expect(disk.Status.Available.String()).To(Equal("723Mi"))
	})

	It("is written about only when there is something new", func(ctx context.Context) {
		n.disk("fast", gibibyte)
		n.made(ctx)
		before := n.looked(ctx).ResourceVersion
		Expect(n.looked(ctx).ResourceVersion).To(Equal(before))
	})

	It("is the same one though a crash came between marking it and saying so, or its NodeDisk was deleted", func(ctx context.Context) {
		n.ensureDisk(ctx, "fast", filepath.Join(n.base, "fast"))
		first := n.looked(ctx)
		Expect(admin.Delete(ctx, first)).To(Succeed())
		n.ensureDisk(ctx, "fast", filepath.Join(n.base, "fast"))
		Expect(n.looked(ctx).Status.Identity).To(Equal(first.Status.Identity))
	})

	It("that isn't mounted has nothing written in its place, and comes back with its volumes", func(ctx context.Context) {
		path := n.disk("fast", gibibyte)
		away := filepath.Join(filepath.Dir(n.base), "away")
		Expect(os.Mkdir(away, 0o700)).To(Succeed())
		volume := n.made(ctx)
		id := n.looked(ctx).Status.Identity.ID
		bindMount(path, away)
		Expect(kernel.Unmount(path)).To(Succeed())

		another := n.volume(ctx)
		n.reconcile(ctx, another)
		n.reconcile(ctx, volume)
		disk := n.looked(ctx)
		expectDisk(disk, "False DiskMissing", "mount that disk there", `kubectl patch nodedisk `+disk.Name+` --type=merge -p '{"spec":{"replaces":"`+id+`"}}'`)
		Expect(provisioned(ctx, another)).To(Equal("False Unavailable"))
		Expect(ready(ctx, volume)).To(Equal("False Lost"))
		Expect(os.ReadDir(path)).To(BeEmpty())

		bindMount(away, path)
		n.reconcile(ctx, volume)
		n.reconcile(ctx, another)
		Expect(ready(ctx, volume)).To(Equal("True Ready"))
		Expect(ready(ctx, another)).To(Equal("True Ready"))
	})

	It("that a person gave up is replaced by what is there, and its volumes are lost and not made anew", func(ctx context.Context) {
		path := n.disk("fast", gibibyte)
		volume := n.made(ctx)
		old := n.looked(ctx)
		Expect(kernel.Unmount(path)).To(Succeed())
		n.disk("fast", gibibyte)

		expectDisk(n.looked(ctx), "False DiskMissing")
		replace(ctx, n.looked(ctx), old.Status.Identity.ID)
		disk := n.looked(ctx)

		expectDisk(disk, "True Ready")
		Expect(disk.Status.Identity.ID).NotTo(Equal(old.Status.Identity.ID))
		n.reconcile(ctx, volume)
		Expect(ready(ctx, volume)).To(Equal("False Lost"))
		Expect(dir(volume)).NotTo(BeADirectory())
		n.made(ctx)
		reclaim(ctx, volume)
		n.reconcile(ctx, volume)
		Expect(read(ctx, volume)).To(BeNil())
	})

	It("from before disks had markers is taken for what it is, if volumes are there", func(ctx context.Context) {
		volume := n.made(ctx)
		Expect(os.Remove(filepath.Join(n.base, "fast", markerFile))).To(Succeed())
		Expect(admin.Delete(ctx, n.looked(ctx))).To(Succeed())
		n.ensureDisk(ctx, "fast", filepath.Join(n.base, "fast"))
		expectDisk(n.looked(ctx), "True Ready")
		n.reconcile(ctx, volume)
		Expect(ready(ctx, volume)).To(Equal("True Ready"))
	})

	It("without a marker is refused on a node of the same name whose volumes aren't there, until a person says that they are gone", func(ctx context.Context) {
		volume := n.made(ctx)
		Expect(os.RemoveAll(filepath.Join(n.base, "fast"))).To(Succeed())
		Expect(admin.Delete(ctx, &n.nodeDisks(ctx)[0])).To(Succeed())
		n.ensureDisk(ctx, "fast", filepath.Join(n.base, "fast"))
		expectDisk(n.looked(ctx), "False DiskMissing", volume.Name, `{"spec":{"replaces":"unknown"}}`)
		Expect(filepath.Join(n.base, "fast")).NotTo(BeADirectory())

		replace(ctx, n.looked(ctx), stowagev1alpha1.ReplacesUnknown)
		expectDisk(n.looked(ctx), "True Ready")
		n.reconcile(ctx, volume)
		Expect(ready(ctx, volume)).To(Equal("False Lost"))
	})

	It("of another backend isn't taken, and says whose it is", func(ctx context.Context) {
		n.ensureDisk(ctx, "slow", filepath.Join(n.base, "disk"))
		Expect(admin.Delete(ctx, n.looked(ctx))).To(Succeed())
		n.ensureDisk(ctx, "fast", filepath.Join(n.base, "disk"))
		expectDisk(n.looked(ctx), "False ForeignDisk", "marked as that of backend slow")
	})

	It("that was copied, marker and all, is another one", func(ctx context.Context) {
		n.made(ctx)
		disk := n.looked(ctx)
		id := disk.Status.Identity.ID
		disk.Status.Identity.FileSystem = "ext4:0123456789abcdef"
		Expect(admin.Status().Update(ctx, disk)).To(Succeed())
		disk = n.looked(ctx)
		expectDisk(disk, "False DiskMissing", "mount the disk that it was copied from")

		replace(ctx, disk, id)
		disk = n.looked(ctx)
		expectDisk(disk, "True Ready")
		Expect(disk.Status.Identity.ID).NotTo(Equal(id))
	})

	It("that is another one than its volumes were made on doesn't give them to pods", func(ctx context.Context) {
		volume := n.made(ctx)
		Expect(n.reconciler.CheckDisk(ctx, dir(volume))).To(Succeed())
		disk := n.looked(ctx)
		disk.Status.Identity.FileSystem = "ext4:0123456789abcdef"
		Expect(admin.Status().Update(ctx, disk)).To(Succeed())
		Expect(n.reconciler.CheckDisk(ctx, dir(volume))).To(MatchError(ContainSubstring("mount the disk that it was copied from")))
		Expect(n.reconciler.CheckDisk(ctx, filepath.Join(n.base, "by-hand", "data"))).To(Succeed())
	})

	It("that is missing with its folder keeps a volume that a crash left half made on the record", func(ctx context.Context) {
		path := filepath.Join(n.base, "fast")
		n.ensureDisk(ctx, "fast", path)
		n.looked(ctx)
		volume := n.volume(ctx)
		reclaim(ctx, volume)
		Expect(os.Mkdir(filepath.Join(path, ".new-"+volume.Name), 0o700)).To(Succeed())
		Expect(os.Rename(path, path+".away")).To(Succeed())
		n.reconcile(ctx, volume)
		Expect(read(ctx, volume)).NotTo(BeNil())

		Expect(os.Rename(path+".away", path)).To(Succeed())
		n.reconcile(ctx, volume)
		Expect(read(ctx, volume)).To(BeNil())
		Expect(filepath.Join(path, ".new-"+volume.Name)).NotTo(BeADirectory())
	})

	It("with nothing left says so, and its numbers tell what fills it", func(ctx context.Context) {
		n.disk("fast", gibibyte)
		n.made(ctx, asking("1023.5Mi"))
		disk := n.looked(ctx)
		says, message := verdict(disk, stowagev1alpha1.HasRoomCondition)
		Expect(says).To(Equal("False Full"))
		Expect(message).To(ContainSubstring("nothing is left of 1Gi (0 reserved): delete claims"))
		Expect(disk.Status.Given.String()).To(Equal("1023Mi"))
		Expect(disk.Status.Available.IsZero()).To(BeTrue())
		expectDisk(disk, "True Ready")
	})

	It("keeps free what its backend reserves, from when it says so", func(ctx context.Context) {
		n.disk("fast", gibibyte)
		n.made(ctx)
		disk := n.looked(ctx)
		disk.Spec.ReservedCapacity = new(resource.MustParse("512Mi"))
		Expect(admin.Update(ctx, disk)).To(Succeed())
		Expect(n.looked(ctx).Status.Available.String()).To(Equal("412Mi"))
	})
})
