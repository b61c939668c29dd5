package volumeagent_test

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/uuid"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// snapshotOf requests the content of a VolumeSnapshot.
func snapshotOf(source *stowagev1alpha1.NodeVolume) func(*stowagev1alpha1.NodeVolume) {
	return func(volume *stowagev1alpha1.NodeVolume) {
		volume.Spec = *source.Spec.DeepCopy()
		volume.Spec.Source, volume.Spec.SnapshotUID = source.Name, uuid.NewUUID()
		volume.Name = "snapshot-" + string(volume.Spec.SnapshotUID)
	}
}

var _ = Describe("A snapshot of a volume", func() {
	var (
		n      *node
		source *stowagev1alpha1.NodeVolume
	)

	BeforeEach(func(ctx context.Context) {
		n = newNode()
		source = n.made(ctx)
		keep(source, "before")
	})

	It("keeps what the volume had, and a claim is made of it after the volume is gone", func(ctx context.Context) {
		snapshot := n.made(ctx, snapshotOf(source))
		keep(source, "after")
		Expect(stateOf(snapshot)).To(Equal("before"))
		reclaim(ctx, source)
		n.reconcile(ctx, source)
		Expect(read(ctx, source)).To(BeNil())

		restored := n.made(ctx, copyOf(snapshot), func(volume *stowagev1alpha1.NodeVolume) { volume.Spec.SnapshotUID = "" })

		keep(restored, "later")
		Expect(stateOf(snapshot)).To(Equal("before"))
		Expect(entries(source)).To(ConsistOf(snapshot.Name, restored.Name))
	})

	It("keeps its volume from being removed until it is made", func(ctx context.Context) {
		snapshot := n.volume(ctx, snapshotOf(source))
		reclaim(ctx, source)
		n.reconcile(ctx, source)
		_, message := conditionOf(ctx, source, stowagev1alpha1.ReadyCondition)
		Expect(message).To(ContainSubstring("it is to be copied to NodeVolume %s, of the VolumeSnapshot with uid %s, first", snapshot.Name, snapshot.Spec.SnapshotUID))
		n.reconcile(ctx, snapshot)
		n.reconcile(ctx, source)
		Expect(read(ctx, source)).To(BeNil())
		Expect(stateOf(snapshot)).To(Equal("before"))
	})

	It("isn't removed while a claim is to be made of it", func(ctx context.Context) {
		snapshot := n.made(ctx, snapshotOf(source))
		restored := n.volume(ctx, copyOf(snapshot), func(volume *stowagev1alpha1.NodeVolume) { volume.Spec.SnapshotUID = "" })
		reclaim(ctx, snapshot)
		n.reconcile(ctx, snapshot)
		Expect(stateOf(snapshot)).To(Equal("before"))
		n.reconcile(ctx, restored)
		n.reconcile(ctx, snapshot)
		Expect(read(ctx, snapshot)).To(BeNil())
		Expect(stateOf(restored)).To(Equal("before"))
	})

	It("is refused where its volume is gone", func(ctx context.Context) {
		reclaim(ctx, source)
		n.reconcile(ctx, source)
		snapshot := n.volume(ctx, snapshotOf(source))
		n.reconcile(ctx, snapshot)
		verdict, message := conditionOf(ctx, snapshot, stowagev1alpha1.ProvisionedCondition)
		Expect(verdict).To(Equal("False Invalid"))
		Expect(message).To(ContainSubstring("is gone: delete the VolumeSnapshot"))
	})

	It("is refused under a name that isn't its VolumeSnapshot's", func(ctx context.Context) {
		snapshot := n.volume(ctx, snapshotOf(source), func(volume *stowagev1alpha1.NodeVolume) { volume.Spec.SnapshotUID = "other" })
		n.reconcile(ctx, snapshot)
		verdict, message := conditionOf(ctx, snapshot, stowagev1alpha1.ProvisionedCondition)
		Expect(verdict).To(Equal("False Invalid"))
		Expect(message).To(ContainSubstring("its name must be snapshot-other"))
		Expect(entries(source)).To(ConsistOf(source.Name))
	})

	It("is found on the disk without its NodeVolume, with the claim of its volume", func(ctx context.Context) {
		needsMounts()
		snapshot := n.made(ctx, snapshotOf(source))
		lose(ctx, snapshot)
		Expect(n.inspected(ctx).Status.Unrecorded.Volumes).To(ConsistOf(entry(snapshot, stowagev1alpha1.LayoutDirectory)))
	})

	It("needs a source", func(ctx context.Context) {
		snapshot := n.made(ctx, snapshotOf(source))
		snapshot.Name, snapshot.ResourceVersion, snapshot.Spec.Source = "snapshot-b", "", ""
		Expect(admin.Create(ctx, snapshot)).To(MatchError(ContainSubstring("a snapshot needs a source")))
	})

	It("stays one", func(ctx context.Context) {
		snapshot := read(ctx, n.made(ctx, snapshotOf(source)))
		snapshot.Spec.SnapshotUID = ""
		Expect(admin.Update(ctx, snapshot)).To(MatchError(ContainSubstring("snapshotUID is immutable")))
	})
})

// keep writes the one file of a volume.
func keep(volume *stowagev1alpha1.NodeVolume, text string) {
	GinkgoHelper()
	Expect(os.WriteFile(filepath.Join(dir(volume), "state"), []byte(text), 0o640)).To(Succeed())
}

// stateOf is what the one file of a volume has.
func stateOf(volume *stowagev1alpha1.NodeVolume) string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(dir(volume), "state"))
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}
