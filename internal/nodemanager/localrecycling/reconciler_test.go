package localrecycling_test

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
	"github.com/stowage-dev/stowage/internal/nodemanager/localrecycling"
)

var _ = Describe("A directory that is to be emptied", func() {
	var n *node
	BeforeEach(func() { n = newNode() })

	It("is emptied once the manager approves, and stays itself", func() {
		Expect(os.Chmod(n.scratch, 0o770)).To(Succeed())
		neighbour := filepath.Join(n.root, "neighbour", "file")
		write(neighbour)
		recycling := n.asked(n.scratch)
		pass(n.agent, recycling)
		pass(n.agent, recycling)
		Expect(filepath.Join(n.scratch, "dir", "file")).To(BeAnExistingFile())

		approve(recycling)
		pass(n.agent, recycling)

		verdict, _ := said(recycling)
		Expect(verdict).To(Equal("True Ready"))
		Expect(os.ReadDir(n.scratch)).To(BeEmpty())
		info, err := os.Stat(n.scratch)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o770)))
		Expect(neighbour).To(BeAnExistingFile())
		Expect(n.canary).To(BeAnExistingFile())
	})

	It("is emptied once, whatever is written there later", func() {
		recycling := n.asked(n.scratch)
		pass(n.agent, recycling)
		approve(recycling)
		pass(n.agent, recycling)
		later := filepath.Join(n.scratch, "later")
		write(later)
		for _, agent := range []*localrecycling.Reconciler{n.agent, n.newAgent()} {
			pass(agent, recycling)
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
		recycling := n.asked(n.scratch)
		pass(n.agent, recycling)
		approve(recycling)
		Expect(pass(n.agent, recycling).RequeueAfter).To(BeNumerically("<", time.Second))
		verdict, message := said(recycling)
		Expect([]string{verdict, message}).To(Equal([]string{"False Pending", "not all of it could be removed so far: removing goes on"}))

		slices, written := 0, recycling.ResourceVersion
		for pass(n.agent, recycling).RequeueAfter > 0 {
			Expect(recycling.ResourceVersion).To(Equal(written))
			slices++
		}
		Expect(slices).To(BeNumerically(">", files/10))
		Expect(filepath.Join(n.scratch, "dir")).NotTo(BeADirectory())
	})

	It("is emptied by agents that were started again, and have little time", func() {
		n.slice = time.Nanosecond
		recycling := n.asked(n.scratch)
		for range 20 {
			n.agent = n.newAgent()
			pass(n.agent, recycling)
			if isEmptied, _ := said(recycling); isEmptied == "True Ready" {
				break
			}
			approve(recycling)
			pass(n.agent, recycling)
		}
		Expect(os.ReadDir(n.scratch)).To(BeEmpty())
		verdict, _ := said(recycling)
		Expect(verdict).To(Equal("True Ready"))
	})

	DescribeTable("is refused",
		func(path func() string, reason, message string) {
			recycling := n.asked(path())
			pass(n.agent, recycling)
			verdict, told := said(recycling)
			Expect(verdict).To(Equal("False " + reason))
			Expect(told).To(ContainSubstring(message))
			Expect(recycling.Status.Asking).To(BeEmpty())
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
		recycling := n.asked(n.scratch)
		pass(n.newAgent(), recycling)
		verdict, message := said(recycling)
		Expect(verdict).To(Equal("False NotSupported"))
		Expect(message).To(ContainSubstring("started without --recycle-root"))
	})

	It("is another agent's if it is on another node", func() {
		recycling := n.asked(n.scratch)
		pass(newNode().agent, recycling)
		Expect(recycling.Status).To(BeZero())
	})

	It("stays whole while it is mounted, or something in it, and is emptied when it isn't any more", func() {
		needsMounts()
		for _, mounted := range [][2]string{{n.scratch, filepath.Join(n.top, "target")}, {filepath.Dir(n.canary), filepath.Join(n.scratch, "dir")}} {
			Expect(os.MkdirAll(mounted[1], 0o755)).To(Succeed())
			bindMount(mounted[0], mounted[1])
			recycling := n.asked(n.scratch)
			Expect(pass(n.agent, recycling).RequeueAfter).To(BeNumerically(">", 0))
			verdict, _ := said(recycling)
			Expect(verdict).To(Equal("False InUse"))
			Expect(kernel.Unmount(mounted[1])).To(Succeed())
			pass(n.agent, recycling)
			Expect(recycling.Status.Asking).NotTo(BeEmpty())
		}
		Expect(filepath.Join(n.scratch, "dir", "file")).To(BeAnExistingFile())
		Expect(n.canary).To(BeAnExistingFile())
	})

	It("stays whole if it is mounted after the agent asked", func() {
		needsMounts()
		recycling, target := n.asked(n.scratch), filepath.Join(n.top, "target")
		pass(n.agent, recycling)
		approve(recycling)
		Expect(os.Mkdir(target, 0o755)).To(Succeed())
		bindMount(n.scratch, target)
		pass(n.agent, recycling)
		Expect(filepath.Join(target, "dir", "file")).To(BeAnExistingFile())
	})

	It("is asked about anew by an agent that was started again, and an old approval is worth nothing", func() {
		recycling := n.asked(n.scratch)
		pass(n.agent, recycling)
		approve(recycling)
		restarted := n.newAgent()
		pass(restarted, recycling)
		pass(restarted, recycling)
		Expect(recycling.Status.Asking).NotTo(Equal(recycling.Spec.Approved))
		Expect(filepath.Join(n.scratch, "dir", "file")).To(BeAnExistingFile())

		approve(recycling)
		pass(restarted, recycling)
		Expect(os.ReadDir(n.scratch)).To(BeEmpty())
	})

	It("is asked about anew when the approval comes late", func() {
		recycling := n.asked(n.scratch)
		pass(n.agent, recycling)
		approve(recycling)
		n.clock.SetTime(n.clock.Now().Add(11 * time.Second))
		pass(n.agent, recycling)
		pass(n.agent, recycling)
		Expect(recycling.Status.Asking).NotTo(Equal(recycling.Spec.Approved))
		Expect(os.ReadDir(n.scratch)).To(HaveLen(2))
	})

	DescribeTable("stays whole when, after it was approved,",
		func(change func(*stowagev1alpha1.LocalRecycling)) {
			recycling := n.asked(n.scratch)
			pass(n.agent, recycling)
			approve(recycling)
			n.live.do = func() { change(recycling) }
			pass(n.agent, recycling)
			Expect(filepath.Join(n.scratch, "dir", "file")).To(BeAnExistingFile())
			Expect(filepath.Join(n.scratch, ".stowage-recycle")).NotTo(BeADirectory())
		},
		Entry("it is taken back", func(recycling *stowagev1alpha1.LocalRecycling) {
			Expect(admin.Delete(context.Background(), recycling)).To(Succeed())
		}),
		Entry("another agent of the node asks", func(recycling *stowagev1alpha1.LocalRecycling) {
			other := recycling.DeepCopy()
			other.Status.Asking = "another"
			Expect(admin.Status().Patch(context.Background(), other, client.MergeFrom(recycling))).To(Succeed())
		}),
	)
})
