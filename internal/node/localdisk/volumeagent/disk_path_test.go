package volumeagent_test

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stowage-dev/stowage/internal/mount"
)

var _ = Describe("A path that can't be used", func() {
	var n *node
	BeforeEach(func() { n = newNode() })

	DescribeTable("is refused, with a message that says what to do, where it",
		func(ctx context.Context, path, says, message string, prepare func(base string)) {
			prepare(n.base)
			n.ensureDisk(ctx, "fast", filepath.Join(n.base, path))
			disk := n.looked(ctx)
			expectDisk(disk, says, message)
			Expect(disk.Status.Identity).To(BeNil())
			Expect(n.events.Events).To(Receive(HavePrefix("Warning " + disk.Status.Conditions[0].Reason)))
		},
		Entry("is a symlink", "fast", "False Symlink", "links can be moved", func(base string) {
			Expect(os.Symlink(GinkgoT().TempDir(), filepath.Join(base, "fast"))).To(Succeed())
		}),
		Entry("leads through a symlink", "link/fast", "False Symlink", "links can be moved", func(base string) {
			Expect(os.Symlink(GinkgoT().TempDir(), filepath.Join(base, "link"))).To(Succeed())
		}),
		Entry("is a file", "fast", "False NotADirectory", "remove the file", func(base string) {
			Expect(os.WriteFile(filepath.Join(base, "fast"), nil, 0o600)).To(Succeed())
		}),
		Entry("is to be made in what isn't there", "disks/fast", "False PathMissing", "mount the disk, or create the folder", func(string) {}),
		Entry("lies outside the base", "../elsewhere", "False PathOutsideBase", "--local-base", func(string) {}),
		Entry("holds a marker that nobody can read", "fast", "False ForeignDisk", "isn't one that Stowage wrote", func(base string) {
			Expect(os.Mkdir(filepath.Join(base, "fast"), 0o700)).To(Succeed())
			Expect(os.WriteFile(filepath.Join(base, "fast", markerFile), []byte("?"), 0o600)).To(Succeed())
		}),
	)

	It("is refused where its file system is read-only, before and after it was accepted", func(ctx context.Context) {
		needsMounts()
		n.ensureDisk(ctx, "fast", filepath.Join(n.base, "fast"))
		Expect(os.Mkdir(filepath.Join(n.base, "fast"), 0o700)).To(Succeed())
		readOnly := func() {
			from, err := os.Open(filepath.Join(n.base, "fast"))
			Expect(err).NotTo(HaveOccurred())
			defer from.Close()
			Expect(kernel.Bind(from, filepath.Join(n.base, "fast"), mount.ReadOnly)).To(Succeed())
		}
		readOnly()
		expectDisk(n.looked(ctx), "False ReadOnly", "mount it writable")
		Expect(kernel.Unmount(filepath.Join(n.base, "fast"))).To(Succeed())
		expectDisk(n.looked(ctx), "True Ready")
		readOnly()
		expectDisk(n.looked(ctx), "False ReadOnly", "mount it writable")
		Expect(n.looked(ctx).Status.Available).To(BeNil())
	})

	It("is refused where it lies in another backend's, or around it", func(ctx context.Context) {
		n.ensureDisk(ctx, "fast", filepath.Join(n.base, "a"))
		n.lookAtDisks(ctx)
		n.ensureDisk(ctx, "inner", filepath.Join(n.base, "a", "b"))
		n.ensureDisk(ctx, "same", filepath.Join(n.base, "a"))
		n.ensureDisk(ctx, "beside", filepath.Join(n.base, "ab"))
		n.lookAtDisks(ctx)

		says := map[string]string{}
		for _, disk := range n.nodeDisks(ctx) {
			says[disk.Spec.Backend], _ = verdict(&disk, "Ready")
		}
		Expect(says).To(Equal(map[string]string{
			"fast": "True Ready", "inner": "False PathTaken", "same": "False PathTaken", "beside": "True Ready",
		}))
	})
})
