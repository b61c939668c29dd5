package integration_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/local"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/cluster"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("With the whole manager running, and the agent of a node", func() {
	var (
		base, disks string
		source      *corev1.PersistentVolumeClaim
	)

	BeforeEach(func(ctx SpecContext) {
		if !mounttest.MayMount() {
			Skip("NOT RUN: needs root, and a mount namespace of its own, to mount")
		}
		var err error
		base, err = filepath.EvalSymlinks(GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		disks = filepath.Join(base, "node-a", "disks")
		Expect(cluster.InstallSnapshots(ctx, server.Config)).To(Succeed())
		storage := clientOf(asManager(reconciler.ClusterScope))
		manager{
			scope: reconciler.ClusterScope, bindsSnapshots: true, namespace: apiserver.Namespace,
			kinds: []backend.Kind{local.NewKind(storage, storage, base)},
		}.start()
		startDiskAgent(ctx, agent{node: "node-a", base: base}, 10*gibibyte)
		DeferCleanup(removeEverything)
		source = Claim(ClaimNamed("source"), InClass("disks"))
		create(ctx, LocalBackend("disks", onDisks(base, storagev1.VolumeBindingImmediate)), source)
		setState(filepath.Join(disks, bound(ctx, source)), "before")
	})

	It("a claim is restored from the snapshot of a volume that is gone, and the snapshot is deleted", func(ctx SpecContext) {
		snapshot, content := snapshotted(ctx, source)
		Eventually(isReady).WithArguments(ctx, content).WithTimeout(soon).Should(BeTrue())
		Expect(content.Status.SnapshotHandle).To(HaveValue(Equal(backend.SnapshotID(snapshot.UID))))
		Expect(warningsOf(ctx, content)).To(BeEmpty())
		setState(filepath.Join(disks, source.Spec.VolumeName), "after")
		Expect(users.Delete(ctx, source)).To(Succeed())
		Eventually(names).WithArguments(disks).WithTimeout(soon).ShouldNot(ContainElement(source.Spec.VolumeName))

		restored := Claim(ClaimNamed("restored"), InClass("disks"), func(claim *corev1.PersistentVolumeClaim) {
			claim.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: new(provisioned.SnapshotGroup), Kind: provisioned.SnapshotKind, Name: snapshot.Name}
		})
		create(ctx, restored)
		Expect(os.ReadFile(filepath.Join(disks, bound(ctx, restored), "state"))).To(BeEquivalentTo("before"))

		deleteSnapshot(ctx, snapshot)
		Expect(names(disks)).NotTo(ContainElement(*content.Status.SnapshotHandle))
		Expect(os.ReadFile(filepath.Join(disks, restored.Spec.VolumeName, "state"))).To(BeEquivalentTo("before"))
	})

	It("a claim is backed up, restored and its backup deleted by the calls of Velero", func(ctx SpecContext) {
		backup := velero{}.backUp(ctx, source)
		Expect(snapshotVolumes(ctx)).To(ConsistOf(*backup.Status.SnapshotHandle))
		Expect(users.Delete(ctx, source)).To(Succeed())
		Eventually(names).WithArguments(disks).WithTimeout(soon).ShouldNot(ContainElement(source.Spec.VolumeName))

		restored := Claim(ClaimNamed("source"), InClass("disks"))
		snapshot, content := velero{}.expose(ctx, backup, restored, snapshotv1.VolumeSnapshotContentRetain)
		Expect(os.ReadFile(filepath.Join(disks, restored.Spec.VolumeName, "state"))).To(BeEquivalentTo("before"))

		By("deleting the backup while the content of the restore has the snapshot, too")
		velero{}.deleteBackup(ctx, backup)
		Expect(snapshotVolumes(ctx)).To(ConsistOf(*backup.Status.SnapshotHandle))

		By("removing that first")
		Expect(users.Delete(ctx, snapshot)).To(Succeed())
		Expect(users.Delete(ctx, content)).To(Succeed())
		eventuallyNotFound(ctx, snapshot, content)
		Expect(snapshotVolumes(ctx)).To(ConsistOf(*backup.Status.SnapshotHandle))
		velero{}.deleteBackup(ctx, backup)
		Eventually(snapshotVolumes).WithArguments(ctx).WithTimeout(soon).Should(BeEmpty())
		Expect(os.ReadFile(filepath.Join(disks, restored.Spec.VolumeName, "state"))).To(BeEquivalentTo("before"))
	})

	It("a data mover reads a snapshot in a namespace of its own, by the calls of Velero's", func(ctx SpecContext) {
		backup := velero{}.backUp(ctx, source)
		create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "velero"}})
		moved := Claim(InClass("disks"), func(claim *corev1.PersistentVolumeClaim) { claim.Namespace = "velero" })

		snapshot, content := velero{}.expose(ctx, backup, moved, snapshotv1.VolumeSnapshotContentDelete)

		Expect(os.ReadFile(filepath.Join(disks, moved.Spec.VolumeName, "state"))).To(BeEquivalentTo("before"))
		Expect(users.Delete(ctx, moved)).To(Succeed())
		Expect(users.Delete(ctx, snapshot)).To(Succeed())
		eventuallyNotFound(ctx, snapshot, content)
		Expect(snapshotVolumes(ctx)).To(BeEmpty())
	})

	It("a snapshot that waits for the pods of its volume can be deleted all the same", func(ctx SpecContext) {
		release := mountElsewhere(filepath.Join(disks, source.Spec.VolumeName))
		snapshot, content := snapshotted(ctx, source)
		Eventually(func(g Gomega) {
			g.Expect(users.Get(ctx, client.ObjectKeyFromObject(content), content)).To(Succeed())
			g.Expect(content.Status).NotTo(BeNil())
			g.Expect(content.Status.Error).NotTo(BeNil())
			g.Expect(*content.Status.Error.Message).To(ContainSubstring("is copied when no pod uses it"))
		}).WithTimeout(2 * soon).Should(Succeed())

		deleteSnapshot(ctx, snapshot)

		release()
		Expect(names(disks)).NotTo(ContainElement(HavePrefix("snapshot-")))
	})
})

// bound waits until a claim is bound, and returns the name of its volume.
func bound(ctx context.Context, claim *corev1.PersistentVolumeClaim) string {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(users.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		g.Expect(claim.Status.Phase).To(Equal(corev1.ClaimBound))
	}).WithTimeout(soon).Should(Succeed())
	return claim.Spec.VolumeName
}

func setState(volume, text string) {
	GinkgoHelper()
	Expect(os.WriteFile(filepath.Join(volume, "state"), []byte(text), 0o600)).To(Succeed())
}

// snapshotted creates a VolumeSnapshot of a claim, and returns it with its content, which the manager makes.
func snapshotted(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*snapshotv1.VolumeSnapshot, *snapshotv1.VolumeSnapshotContent) {
	GinkgoHelper()
	class := &snapshotv1.VolumeSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{Name: "disks", Annotations: map[string]string{snapshots.DefaultClass: "true"}},
		Driver:     stowagev1alpha1.LocalDriver, DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
	}
	snapshot := &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: "then"},
		Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &claim.Name}},
	}
	create(ctx, class, snapshot)
	DeferCleanup(users.Delete, class)
	content := &snapshotv1.VolumeSnapshotContent{}
	Eventually(users.Get).WithArguments(ctx, client.ObjectKey{Name: snapshots.ContentName(snapshot.UID)}, content).WithTimeout(2 * soon).Should(Succeed())
	return snapshot, content
}

func isReady(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) (bool, error) {
	err := users.Get(ctx, client.ObjectKeyFromObject(content), content)
	return content.Status != nil && ptr.Deref(content.Status.ReadyToUse, false), err
}

// warningsOf are the events about trouble with an object.
func warningsOf(ctx context.Context, object client.Object) (notes []string) {
	GinkgoHelper()
	all := &eventsv1.EventList{}
	Expect(users.List(ctx, all)).To(Succeed())
	for _, each := range all.Items {
		if each.Regarding.UID == object.GetUID() && each.Type == corev1.EventTypeWarning {
			notes = append(notes, each.Note)
		}
	}
	return notes
}

// eventuallyNotFound waits until objects are gone.
func eventuallyNotFound(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		for _, object := range objects {
			g.Expect(apierrors.IsNotFound(users.Get(ctx, client.ObjectKeyFromObject(object), object))).To(BeTrue(), "%T %s", object, object.GetName())
		}
	}).WithTimeout(2 * soon).Should(Succeed())
}

// deleteSnapshot deletes a VolumeSnapshot, and waits until its content and its data are gone.
func deleteSnapshot(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) {
	GinkgoHelper()
	Expect(users.Delete(ctx, snapshot)).To(Succeed())
	Eventually(func(g Gomega) {
		contents, volumes := &snapshotv1.VolumeSnapshotContentList{}, &stowagev1alpha1.NodeVolumeList{}
		g.Expect(apierrors.IsNotFound(users.Get(ctx, client.ObjectKeyFromObject(snapshot), snapshot))).To(BeTrue())
		g.Expect(users.List(ctx, contents)).To(Succeed())
		g.Expect(contents.Items).To(BeEmpty())
		g.Expect(users.List(ctx, volumes)).To(Succeed())
		g.Expect(volumes.Items).NotTo(ContainElement(HaveField("Spec.SnapshotUID", Not(BeEmpty()))))
	}).WithTimeout(soon).Should(Succeed())
}

// names are those in a folder.
func names(folder string) (all []string, err error) {
	entries, err := os.ReadDir(folder)
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all, err
}

// mountElsewhere mounts a volume as a pod has it, until release is called.
func mountElsewhere(volume string) (release func()) {
	GinkgoHelper()
	pod := GinkgoT().TempDir()
	opened, err := os.Open(volume)
	Expect(err).NotTo(HaveOccurred())
	defer opened.Close()
	Expect(mount.Kernel{}.Bind(opened, pod, mount.ReadWrite)).To(Succeed())
	release = sync.OnceFunc(func() { Expect(mount.UnmountBelow(mount.Kernel{}, pod)).To(Succeed()) })
	DeferCleanup(release)
	return release
}
