package volumeagent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

var _ = Describe("A disk that ran out of inodes", func() {
	const inodes, left = 4000, 100

	//proves:csi/local-inodes
	It("says so, and so do its volumes, and takes no new ones until there are some again", func(ctx context.Context) {
		needsMounts()
		n := newNode()
		path := filepath.Join(n.base, "fast")
		Expect(os.Mkdir(path, 0o700)).To(Succeed())
		Expect(unix.Mount("tmpfs", path, "tmpfs", 0, fmt.Sprintf("size=1g,nr_inodes=%d", inodes))).To(Succeed())
		volume := n.made(ctx)
		files := filepath.Join(dir(volume), "files")
		Expect(os.Mkdir(files, 0o700)).To(Succeed())
		for i := range inodes - left {
			Expect(os.WriteFile(filepath.Join(files, fmt.Sprint(i)), nil, 0o600)).To(Succeed())
		}

		disk := n.inspected(ctx)
		says, message := verdict(disk, stowagev1alpha1.HasRoomCondition)
		Expect(says).To(Equal("False Full"))
		Expect(message).To(ContainSubstring("hardly any inodes"))
		Expect(disk.Status.Available.IsZero()).To(BeTrue())

		another := n.volume(ctx)
		n.reconcile(ctx, another)
		says, message = conditionOf(ctx, another, stowagev1alpha1.ProvisionedCondition)
		Expect(says).To(Equal("False Exhausted"))
		Expect(message).To(ContainSubstring("hardly any inodes"))

		n.reconcile(ctx, volume)
		Expect(ready(ctx, volume)).To(Equal("True Ready"))
		says, message = conditionOf(ctx, volume, stowagev1alpha1.HealthyCondition)
		Expect(says).To(Equal("False DiskNearlyFull"))
		Expect(message).To(ContainSubstring("hardly any inodes"))

		Expect(os.RemoveAll(files)).To(Succeed())
		n.reconcile(ctx, another)
		Expect(ready(ctx, another)).To(Equal("True Ready"))
		says, _ = verdict(n.inspected(ctx), stowagev1alpha1.HasRoomCondition)
		Expect(says).To(Equal("True Ready"))
	})
})
