package recycling_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/recycling"
)

var _ = Describe("A directory that is to be emptied", func() {
	var n *node
	BeforeEach(func() { n = newNode() })

	It("is emptied once the manager approves, and stays itself", func() {
		Expect(os.Chmod(n.scratch, 0o770)).To(Succeed())
		neighbour := filepath.Join(n.root, "neighbour", "file")
		write(neighbour)
		object := n.asked(n.scratch)
		pass(n.agent, object)
		pass(n.agent, object)
		Expect(filepath.Join(n.scratch, "dir", "file")).To(BeAnExistingFile())

		approve(object)
		pass(n.agent, object)

		verdict, _ := said(object)
		Expect(verdict).To(Equal("True Ready"))
		Expect(os.ReadDir(n.scratch)).To(BeEmpty())
		info, err := os.Stat(n.scratch)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o770)))
		Expect(neighbour).To(BeAnExistingFile())
		Expect(n.canary).To(BeAnExistingFile())
	})

	It("is emptied once, whatever is written there later", func() {
		object := n.asked(n.scratch)
		pass(n.agent, object)
		approve(object)
		pass(n.agent, object)
		later := filepath.Join(n.scratch, "later")
		write(later)
		for _, agent := range []*recycling.Reconciler{n.agent, n.newAgent()} {
			pass(agent, object)
		}
		Expect(later).To(BeAnExistingFile())
	})

	It("goes in slices, which others' turns lie between, after one approval, and says so once", func() {
		const files = 20
		for i := range files {
			write(filepath.Join(n.scratch, "dir", fmt.Sprint(i)))
		}
		Expect(os.Remove(filepath.Join(n.scratch, "link"))).To(Succeed())
		n.slice = time.Nanosecond
		n.agent = n.newAgent()
		object := n.asked(n.scratch)
		pass(n.agent, object)
		approve(object)
		Expect(pass(n.agent, object).RequeueAfter).To(BeNumerically("<", time.Second))
		verdict, message := said(object)
		Expect([]string{verdict, message}).To(Equal([]string{"False Pending", "not all of it could be removed so far: removing goes on"}))

		slices, written := 0, object.ResourceVersion
		for pass(n.agent, object).RequeueAfter > 0 {
			Expect(object.ResourceVersion).To(Equal(written))
			slices++
		}
		Expect(slices).To(BeNumerically(">", files/10))
		Expect(filepath.Join(n.scratch, "dir")).NotTo(BeADirectory())
	})

	It("is emptied by agents that were started again, and have little time", func() {
		n.slice = time.Nanosecond
		object := n.asked(n.scratch)
		for range 20 {
			n.agent = n.newAgent()
			pass(n.agent, object)
			if isEmptied, _ := said(object); isEmptied == "True Ready" {
				break
			}
			approve(object)
			pass(n.agent, object)
		}
		Expect(os.ReadDir(n.scratch)).To(BeEmpty())
		verdict, _ := said(object)
		Expect(verdict).To(Equal("True Ready"))
	})

	DescribeTable("is refused",
		func(path func() string, reason, message string) {
			object := n.asked(path())
			pass(n.agent, object)
			verdict, told := said(object)
			Expect(verdict).To(Equal("False " + reason))
			Expect(told).To(ContainSubstring(message))
			Expect(object.Status.Asking).To(BeEmpty())
			Expect(n.canary).To(BeAnExistingFile())
		},
		Entry("outside the root", func() string { return filepath.Dir(n.canary) }, stowagev1alpha1.ReasonPathOutsideRoot, "only directories below the agent's --recycle-root"),
		Entry("if it is the root itself", func() string { return n.root }, stowagev1alpha1.ReasonPathOutsideRoot, "--recycle-root itself"),
		Entry("behind a symlink", func() string { return filepath.Join(n.scratch, "link") }, stowagev1alpha1.ReasonPathOutsideRoot, "symlink"),
		Entry("if it is a file", func() string { return filepath.Join(n.scratch, "dir", "file") }, stowagev1alpha1.ReasonNotADirectory, "not a directory"),
		Entry("if it is missing", func() string { return filepath.Join(n.root, "missing") }, stowagev1alpha1.ReasonPathMissing, "mount the disk"),
	)

	It("is refused by an agent that was given no root", func() {
		n.root = ""
		object := n.asked(n.scratch)
		pass(n.newAgent(), object)
		verdict, message := said(object)
		Expect(verdict).To(Equal("False NotSupported"))
		Expect(message).To(ContainSubstring("started without --recycle-root"))
	})

	It("is another agent's if it is on another node", func() {
		object := n.asked(n.scratch)
		pass(newNode().agent, object)
		Expect(object.Status).To(BeZero())
	})

	It("stays whole while it is mounted, or something in it, and is emptied when it isn't any more", func() {
		needsMounts()
		for _, mounted := range [][2]string{{n.scratch, filepath.Join(n.top, "target")}, {filepath.Dir(n.canary), filepath.Join(n.scratch, "dir")}} {
			Expect(os.MkdirAll(mounted[1], 0o755)).To(Succeed())
			bindMount(mounted[0], mounted[1])
			object := n.asked(n.scratch)
			Expect(pass(n.agent, object).RequeueAfter).To(BeNumerically(">", 0))
			verdict, _ := said(object)
			Expect(verdict).To(Equal("False InUse"))
			Expect(kernel.Unmount(mounted[1])).To(Succeed())
			pass(n.agent, object)
			Expect(object.Status.Asking).NotTo(BeEmpty())
		}
		Expect(filepath.Join(n.scratch, "dir", "file")).To(BeAnExistingFile())
		Expect(n.canary).To(BeAnExistingFile())
	})

	It("stays whole if it is mounted after the agent asked", func() {
		needsMounts()
		object, target := n.asked(n.scratch), filepath.Join(n.top, "target")
		pass(n.agent, object)
		approve(object)
		Expect(os.Mkdir(target, 0o755)).To(Succeed())
		bindMount(n.scratch, target)
		pass(n.agent, object)
		Expect(filepath.Join(target, "dir", "file")).To(BeAnExistingFile())
	})

	It("is asked about anew by an agent that was started again, and an old approval is worth nothing", func() {
		object := n.asked(n.scratch)
		pass(n.agent, object)
		approve(object)
		restarted := n.newAgent()
		pass(restarted, object)
		pass(restarted, object)
		Expect(object.Status.Asking).NotTo(Equal(object.Spec.Approved))
		Expect(filepath.Join(n.scratch, "dir", "file")).To(BeAnExistingFile())

		approve(object)
		pass(restarted, object)
		Expect(os.ReadDir(n.scratch)).To(BeEmpty())
	})

	It("is asked about anew when the approval comes late", func() {
		object := n.asked(n.scratch)
		pass(n.agent, object)
		approve(object)
		n.clock.SetTime(n.clock.Now().Add(11 * time.Second))
		pass(n.agent, object)
		pass(n.agent, object)
		Expect(object.Status.Asking).NotTo(Equal(object.Spec.Approved))
		Expect(os.ReadDir(n.scratch)).To(HaveLen(2))
	})

	DescribeTable("stays whole when, after it was approved,",
		func(change func(*stowagev1alpha1.NodeRecycling)) {
			object := n.asked(n.scratch)
			pass(n.agent, object)
			approve(object)
			n.live.do = func() { change(object) }
			pass(n.agent, object)
			Expect(filepath.Join(n.scratch, "dir", "file")).To(BeAnExistingFile())
			Expect(filepath.Join(n.scratch, ".stowage-recycle")).NotTo(BeADirectory())
		},
		Entry("it is taken back", func(object *stowagev1alpha1.NodeRecycling) {
			Expect(admin.Delete(context.Background(), object)).To(Succeed())
		}),
		Entry("another agent of the node asks", func(object *stowagev1alpha1.NodeRecycling) {
			other := object.DeepCopy()
			other.Status.Asking = "another"
			Expect(admin.Status().Patch(context.Background(), other, client.MergeFrom(object))).To(Succeed())
		}),
	)
})
