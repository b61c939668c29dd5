package stock_test

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/test/harness/cluster"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A CSI driver with the real snapshot-controller", Label("sidecars"), func() {
	It("has its snapshots made, restored and deleted by Stowage", func(ctx SpecContext) {
		driver := startDriver(ctx)
		driver.handOver(ctx)
		By("installing the CRDs of snapshots, while the manager runs, and their controller")
		startSnapshotController(ctx, movable)
		source := driver.use(ctx, "source")

		By("creating a claim before its snapshot")
		restored := &user{driver: driver, claim: Claim(ClaimNamed("restored"), InClass(movable), func(claim *corev1.PersistentVolumeClaim) {
			claim.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: new("snapshot.storage.k8s.io"), Kind: "VolumeSnapshot", Name: "before"}
		})}
		create(ctx, restored.claim)
		Eventually(messages).WithContext(ctx).WithArguments(restored.claim).
			Should(ContainElement(ContainSubstring("VolumeSnapshot before, which is to be restored, does not exist")))
		snapshot := snapshotOf(source.claim, movable, "before")
		create(ctx, snapshot)

		By("waiting until the claim is restored")
		restored.pv = eventuallyBound(ctx, restored.claim)
		content := contentOf(ctx, snapshot)
		request := driver.request("stowage", "CreateVolume", restored.pv.Name).(*csispec.CreateVolumeRequest)
		Expect(request.GetVolumeContentSource().GetSnapshot().GetSnapshotId()).To(Equal(*content.Status.SnapshotHandle))
		Eventually(func(g Gomega) {
			g.Expect(users.Get(ctx, keyOf(restored.claim), restored.claim)).To(Succeed())
			g.Expect(provisioned.Records(restored.claim)).To(HaveEach(BeEmpty()))
		}).WithContext(ctx).Should(Succeed())

		By("deleting the snapshot, which leaves both volumes")
		remove(ctx, snapshot)
		eventuallyGone(ctx, snapshot)
		eventuallyGone(ctx, content)
		Expect(driver.volumes(ctx)).To(HaveLen(2))
		for _, of := range []*user{source, restored} {
			of.remove(ctx)
		}
		Expect(driver.volumes(ctx)).To(BeEmpty())
	})
})

var _ = Describe("A CSI driver whose manager is killed while snapshots are made and deleted", Label("sidecars"), func() {
	It("has one snapshot for each VolumeSnapshot, and none for one that was deleted during the call", func(ctx SpecContext) {
		driver := startDriver(ctx)
		DeferCleanup(func(ctx SpecContext) {
			if CurrentSpecReport().Failed() {
				restartManager(ctx)
			}
		})
		driver.handOver(ctx)
		startSnapshotController(ctx, movable)
		others := driver.snapshots(ctx) // the driver begins with some
		source := driver.use(ctx, "source")
		before := snapshotOf(source.claim, movable, "before")
		create(ctx, before)
		eventuallyReady(ctx, before)
		content := contentOf(ctx, before)

		By("killing the manager after the driver made two snapshots and deleted one, and before anything records that")
		release := driver.hold("CreateSnapshot", "DeleteSnapshot")
		defer release()
		snapshot, mistake := snapshotOf(source.claim, movable, "snapshot"), snapshotOf(source.claim, movable, "mistake")
		create(ctx, snapshot, mistake)
		remove(ctx, before)
		Eventually(driver.snapshots).WithContext(ctx).Should(And(HaveLen(len(others)+2), Not(ContainElement(*content.Status.SnapshotHandle))))
		killManager()
		Expect(users.Get(ctx, keyOf(content), content)).To(Succeed())

		By("deleting a VolumeSnapshot whose call was interrupted, and going on")
		remove(ctx, mistake)
		release()
		Expect(world.manager.StartReady(ctx)).To(Succeed())
		eventuallyReady(ctx, snapshot)
		other := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: snapshots.ContentName(mistake.UID)}}
		for _, object := range []client.Object{before, content, mistake, other} {
			eventuallyGone(ctx, object)
		}
		Expect(driver.snapshots(ctx)).To(ConsistOf(append(others, *contentOf(ctx, snapshot).Status.SnapshotHandle)))
		remove(ctx, snapshot)
		Eventually(driver.snapshots).WithContext(ctx).Should(ConsistOf(others))
		source.remove(ctx)
	})
})

var _ = Describe("A snapshot in its undelete window, with the real snapshot-controller", Label("sidecars"), func() {
	It("comes back to a VolumeSnapshot, and goes at the end", func(ctx SpecContext) {
		driver := startDriver(ctx)
		object := driver.handOver(ctx)
		startSnapshotController(ctx, movable)
		others := driver.snapshots(ctx) // the driver begins with some
		source := driver.use(ctx, "source")
		snapshot := snapshotOf(source.claim, movable, "by-mistake")
		create(ctx, snapshot)
		eventuallyReady(ctx, snapshot)
		content := contentOf(ctx, snapshot)
		retain := func(window time.Duration) {
			changed := object.DeepCopy()
			changed.Spec.Deletion.RetainSnapshotsFor.Duration = window
			Expect(users.Patch(ctx, changed, client.MergeFrom(object))).To(Succeed())
			object = changed
		}
		retain(72 * time.Hour)

		By("deleting the VolumeSnapshot, which goes at once")
		remove(ctx, snapshot)
		eventuallyGone(ctx, snapshot)
		eventuallyGone(ctx, content)
		next := &snapshotv1.VolumeSnapshotContent{}
		next.Name = snapshots.UndeletableName(content.UID)
		Expect(driver.snapshots(ctx)).To(HaveLen(len(others) + 1))

		By("creating it again, of the content that has the snapshot")
		again := snapshotOf(source.claim, movable, snapshot.Name)
		again.Spec.Source = snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: &next.Name}
		create(ctx, again)
		eventuallyReady(ctx, again)
		Eventually(func(g Gomega) {
			g.Expect(users.Get(ctx, keyOf(next), next)).To(Succeed())
			g.Expect(next.Labels).NotTo(HaveKey(stowagev1alpha1.UndeletableLabel))
		}).WithContext(ctx).Should(Succeed())
		Expect(*next.Status.SnapshotHandle).To(Equal(*content.Status.SnapshotHandle))

		By("deleting it once more, and ending the window")
		remove(ctx, again)
		eventuallyGone(ctx, again)
		last := &snapshotv1.VolumeSnapshotContent{}
		last.Name = snapshots.UndeletableName(next.UID)
		Expect(users.Get(ctx, keyOf(last), last)).To(Succeed())
		Expect(driver.snapshots(ctx)).To(HaveLen(len(others) + 1))
		retain(0)
		eventuallyGone(ctx, last)
		Expect(driver.snapshots(ctx)).To(Equal(others))
		source.remove(ctx)
	})
})

var _ = Describe("A disk of Stowage's own with the real snapshot-controller", Label("sidecars"), func() {
	It("has its snapshots made, restored and deleted", func(ctx SpecContext) {
		startSnapshotController(ctx, stowagev1alpha1.GCEDriver)
		source := Claim(ClaimNamed("source"), InClass(cloud+"-now"))
		create(ctx, source)
		first := eventuallyBound(ctx, source)
		snapshot := snapshotOf(source, stowagev1alpha1.GCEDriver, "of-disk")
		restored := Claim(ClaimNamed("restored"), InClass(cloud+"-now"), Asking("20Gi"), func(claim *corev1.PersistentVolumeClaim) {
			claim.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: new("snapshot.storage.k8s.io"), Kind: "VolumeSnapshot", Name: snapshot.Name}
		})
		create(ctx, snapshot, restored)

		By("waiting until the claim is restored")
		second := eventuallyBound(ctx, restored)
		content := contentOf(ctx, snapshot)
		Expect(content.Labels).To(HaveKeyWithValue(stowagev1alpha1.BackendLabel, cloud))
		zone := strings.Split(second.Spec.CSI.VolumeAttributes[stowagev1alpha1.DiskAttribute], "/")[3]
		disk, err := world.service(ctx).Disks.Get(project, zone, second.Spec.CSI.VolumeHandle).Context(ctx).Do()
		Expect(err).NotTo(HaveOccurred())
		Expect(disk.SourceSnapshot).To(HaveSuffix(*content.Status.SnapshotHandle))
		Expect(disk.SizeGb).To(BeEquivalentTo(20))

		By("deleting the snapshot, which leaves both disks")
		remove(ctx, snapshot)
		eventuallyGone(ctx, snapshot)
		eventuallyGone(ctx, content)
		list, err := world.service(ctx).Snapshots.List(project).Context(ctx).Do()
		Expect(err).NotTo(HaveOccurred())
		Expect(list.Items).To(BeEmpty())
		Expect(world.disks(ctx)).To(ContainElements(first.Spec.CSI.VolumeHandle, second.Spec.CSI.VolumeHandle))
		for _, claim := range []*corev1.PersistentVolumeClaim{source, restored} {
			remove(ctx, claim)
		}
		for _, pv := range []*corev1.PersistentVolume{first, second} {
			eventuallyGone(ctx, pv)
		}
	})
})

// startSnapshotController installs the CRDs of snapshots and a class of a driver's, and starts their controller
// for one spec. The CRDs stay: a manager that watches them runs.
func startSnapshotController(ctx context.Context, driver string, flags ...string) *cluster.Program {
	GinkgoHelper()
	Expect(cluster.InstallSnapshots(ctx, plane.Config)).To(Succeed())
	class := &snapshotv1.VolumeSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{Name: driver}, Driver: driver, DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
	}
	create(ctx, class)
	DeferCleanup(remove, class)
	program, err := cluster.NewSnapshotController(filepath.Join(world.dir, "kubeconfigs", "admin"), plane.Log("snapshot-controller"), flags...)
	Expect(err).NotTo(HaveOccurred())
	Expect(program.StartReady(ctx)).To(Succeed())
	DeferCleanup(program.Kill)
	return program
}

// snapshotOf is a snapshot of a claim's volume, of the class of its driver.
func snapshotOf(claim *corev1.PersistentVolumeClaim, class, name string) *snapshotv1.VolumeSnapshot {
	return &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name},
		Spec: snapshotv1.VolumeSnapshotSpec{
			VolumeSnapshotClassName: &class, Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &claim.Name},
		},
	}
}

// contentOf is the content that is bound to a snapshot.
func contentOf(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) *snapshotv1.VolumeSnapshotContent {
	GinkgoHelper()
	Expect(users.Get(ctx, keyOf(snapshot), snapshot)).To(Succeed())
	content := &snapshotv1.VolumeSnapshotContent{}
	Expect(users.Get(ctx, client.ObjectKey{Name: *snapshot.Status.BoundVolumeSnapshotContentName}, content)).To(Succeed())
	return content
}
