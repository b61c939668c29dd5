package volumeagent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/node/localdisk/volumeagent"
)

// full is a disk without any room.
var full = mounttest.Refusal{First: unix.SYS_MKDIRAT, Last: unix.SYS_MKDIRAT, Errno: unix.ENOSPC}

var _ = Describe("A volume that is deleted", func() {
	var n *node

	BeforeEach(func() { n = newNode() })

	It("goes with its data, and leaves its neighbours", func(ctx context.Context) {
		volume, neighbour := n.made(ctx), n.made(ctx)
		Expect(os.MkdirAll(filepath.Join(dir(volume), "a", "b"), 0o755)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir(volume), "a", "hello"), nil, 0o600)).To(Succeed())
		reclaim(ctx, volume)
		n.reconcile(ctx, volume)
		Expect(read(ctx, volume)).To(BeNil())
		Expect(dir(volume)).NotTo(BeADirectory())
		Expect(filepath.Join(n.base, "fast", ".deleting", volume.Name)).NotTo(BeADirectory())
		Expect(dir(neighbour)).To(BeADirectory())
	})

	It("keeps its data when a user deletes the object by hand, and reports what to do", func(ctx context.Context) {
		volume := n.made(ctx)
		Expect(os.WriteFile(filepath.Join(dir(volume), "hello"), nil, 0o600)).To(Succeed())
		Expect(admin.Delete(ctx, volume)).To(Succeed())
		n.reconcile(ctx, volume)
		Expect(filepath.Join(dir(volume), "hello")).To(BeAnExistingFile())
		_, message := conditionOf(ctx, volume, stowagev1alpha1.ReadyCondition)
		Expect(message).To(And(ContainSubstring(dir(volume)), ContainSubstring("spec.removeData")))

		reclaim(ctx, read(ctx, volume))
		n.reconcile(ctx, volume)
		Expect(read(ctx, volume)).To(BeNil())
		Expect(dir(volume)).NotTo(BeADirectory())
	})

	It("goes though it was never made", func(ctx context.Context) {
		volume := n.volume(ctx)
		reclaim(ctx, volume)
		n.reconcile(ctx, volume)
		Expect(read(ctx, volume)).To(BeNil())
		Expect(entries(volume)).To(BeEmpty())
	})

	It("goes though it was deleted by hand, if nothing was made for it", func(ctx context.Context) {
		for _, volume := range []*stowagev1alpha1.NodeVolume{n.volume(ctx), n.volume(ctx, at("/srv/elsewhere"))} {
			Expect(admin.Delete(ctx, volume)).To(Succeed())
			n.reconcile(ctx, volume)
			Expect(read(ctx, volume)).To(BeNil())
		}
	})

	It("goes though its disk is full, which takes no new folder", func(ctx context.Context) {
		volume := n.made(ctx)
		reclaim(ctx, volume)

		Expect(full.Under(GinkgoTB(), func() error {
			defer GinkgoRecover()
			n.reconcile(ctx, volume)
			return nil
		})).To(Succeed())

		Expect(read(ctx, volume)).To(BeNil())
		Expect(entries(volume)).To(BeEmpty())
	})

	It("keeps its object while its disk isn't there, even without a NodeDisk", func(ctx context.Context) {
		path := n.disk("fast", gibibyte)
		volume := n.made(ctx)
		away := filepath.Join(filepath.Dir(n.base), "away")
		Expect(os.Mkdir(away, 0o700)).To(Succeed())
		bindMount(path, away)
		Expect(kernel.Unmount(path)).To(Succeed())
		Expect(admin.Delete(ctx, n.inspected(ctx))).To(Succeed())
		n.ensureDisk(ctx, "fast", path)
		reclaim(ctx, volume)

		n.reconcile(ctx, volume)

		_, message := conditionOf(ctx, volume, stowagev1alpha1.ReadyCondition)
		Expect(message).To(And(ContainSubstring("isn't known to be that of its disk"), ContainSubstring("mount the disk")))
		bindMount(away, path)
		n.reconcile(ctx, volume)
		Expect(read(ctx, volume)).To(BeNil())
		Expect(os.ReadDir(path)).NotTo(ContainElement(HaveField("Name()", volume.Name)))
	})

	It("goes though its removal was cut off at any point", func(ctx context.Context) {
		volume := n.made(ctx)
		retired := filepath.Join(n.base, "fast", ".deleting", volume.Name)
		Expect(os.MkdirAll(filepath.Dir(retired), 0o700)).To(Succeed())
		Expect(os.Rename(dir(volume), retired)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(retired, "left"), nil, 0o600)).To(Succeed())
		Expect(os.Mkdir(filepath.Join(n.base, "fast", ".new-"+volume.Name), 0o700)).To(Succeed())
		reclaim(ctx, volume)

		n.reconcile(ctx, volume)

		Expect(read(ctx, volume)).To(BeNil())
		Expect(retired).NotTo(BeADirectory())
		Expect(entries(volume)).To(BeEmpty())
	})

	//proves:csi/local-removal
	It("is removed in slices, with others between them, over restarts, and reports that once", func(ctx context.Context) {
		const files = 20
		volume := n.made(ctx)
		for i := range files {
			Expect(os.WriteFile(filepath.Join(dir(volume), fmt.Sprint(i)), nil, 0o600)).To(Succeed())
		}
		reclaim(ctx, volume)
		n.reconciler.Store.Slice = time.Nanosecond
		n.reconcile(ctx, volume)
		message := "not all of it could be removed so far: removing goes on"
		verdict, got := conditionOf(ctx, volume, stowagev1alpha1.ReadyCondition)
		Expect([]string{verdict, got}).To(Equal([]string{"False Pending", message}))
		written := read(ctx, volume).ResourceVersion

		for range files - 1 {
			Expect(read(ctx, volume).ResourceVersion).To(Equal(written))
			n.reconciler = volumeagent.NewReconciler(n.options(n.api))
			n.reconciler.Store.Slice = time.Nanosecond
			Expect(n.reconcile(ctx, volume).RequeueAfter).To(BeNumerically("<", time.Second))
		}
		n.reconcile(ctx, volume)
		Expect(read(ctx, volume)).To(BeNil())
		Expect(entries(volume)).To(BeEmpty())
		Expect(n.events.Events).NotTo(Receive(ContainSubstring("Pending")))
	})

	It("stays whole while it is mounted anywhere, and goes after that", func(ctx context.Context) {
		needsMounts()
		volume, target := n.made(ctx), filepath.Join(n.base, "target")
		Expect(os.WriteFile(filepath.Join(dir(volume), "hello"), nil, 0o600)).To(Succeed())
		Expect(os.Mkdir(target, 0o755)).To(Succeed())
		bindMount(dir(volume), target)
		reclaim(ctx, volume)

		result := n.reconcile(ctx, volume)

		Expect(ready(ctx, volume)).To(Equal("False InUse"))
		Expect(result.RequeueAfter).To(BeNumerically(">", 0))
		Expect(filepath.Join(target, "hello")).To(BeAnExistingFile())
		Expect(dir(volume)).To(BeADirectory())
		Expect(kernel.Unmount(target)).To(Succeed())
		n.reconcile(ctx, volume)
		Expect(read(ctx, volume)).To(BeNil())
	})

	It("stays whole while something is mounted in it", func(ctx context.Context) {
		needsMounts()
		volume, precious := n.made(ctx), GinkgoT().TempDir()
		canary, inside := filepath.Join(precious, "canary"), filepath.Join(dir(volume), "inside")
		Expect(os.WriteFile(canary, nil, 0o600)).To(Succeed())
		Expect(os.Mkdir(inside, 0o755)).To(Succeed())
		bindMount(precious, inside)
		reclaim(ctx, volume)
		n.reconcile(ctx, volume)
		Expect(ready(ctx, volume)).To(Equal("False InUse"))
		Expect(canary).To(BeAnExistingFile())
		Expect(inside).To(BeADirectory())
	})

	It("doesn't take along what its symlinks lead to", func(ctx context.Context) {
		volume, precious := n.made(ctx), GinkgoT().TempDir()
		canary := filepath.Join(precious, "canary")
		Expect(os.WriteFile(canary, nil, 0o600)).To(Succeed())
		Expect(os.Symlink(precious, filepath.Join(dir(volume), "link"))).To(Succeed())
		reclaim(ctx, volume)
		n.reconcile(ctx, volume)
		Expect(read(ctx, volume)).To(BeNil())
		Expect(canary).To(BeAnExistingFile())
	})

	It("keeps its object while its disk isn't mounted", func(ctx context.Context) {
		volume := n.made(ctx)
		away := filepath.Join(GinkgoT().TempDir(), "away")
		Expect(os.Rename(filepath.Join(n.base, "fast"), away)).To(Succeed())
		reclaim(ctx, volume)
		n.reconcile(ctx, volume)
		Expect(ready(ctx, volume)).To(Equal("False Unavailable"))
		Expect(os.Rename(away, filepath.Join(n.base, "fast"))).To(Succeed())
		n.reconcile(ctx, volume)
		Expect(read(ctx, volume)).To(BeNil())
		Expect(dir(volume)).NotTo(BeADirectory())
	})

	It("keeps its object while only an empty mount point is there", func(ctx context.Context) {
		path := n.disk("fast", gibibyte)
		away := filepath.Join(filepath.Dir(n.base), "away")
		Expect(os.Mkdir(away, 0o700)).To(Succeed())
		volume := n.made(ctx)
		bindMount(path, away)
		Expect(kernel.Unmount(path)).To(Succeed())
		reclaim(ctx, volume)
		n.reconcile(ctx, volume)
		Expect(ready(ctx, volume)).To(Equal("False Unavailable"))
		bindMount(away, path)
		n.reconcile(ctx, volume)
		Expect(read(ctx, volume)).To(BeNil())
		Expect(filepath.Join(away, volume.Name)).NotTo(BeADirectory())
	})
})

func bindMount(source, target string) {
	GinkgoHelper()
	from, err := os.Open(source)
	Expect(err).NotTo(HaveOccurred())
	defer from.Close()
	Expect(kernel.Bind(from, target, mount.ReadWrite)).To(Succeed())
}
