package stock_test

import (
	"path/filepath"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend/named"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A local volume with the real csi-snapshotter on a CSI socket of the manager", Label("sidecars"), func() {
	It("has its snapshot made and deleted by csi-snapshotter, and restored by Stowage", func(ctx SpecContext) {
		socket := filepath.Join(GinkgoT().TempDir(), "csi.sock")
		Expect(world.manager.Stop()).To(Succeed())
		world.startManager(ctx, "classes", "--csi-controllers="+disks+"="+socket, "--csi-snapshotter-drivers="+stowagev1alpha1.LocalDriver)
		DeferCleanup(func(ctx SpecContext) {
			Expect(world.manager.Stop()).To(Succeed())
			world.startManager(ctx, "classes")
		})
		startSnapshotController(ctx, stowagev1alpha1.LocalDriver)
		startSnapshotter(ctx, socket)
		source := Claim(ClaimNamed("source"), InClass(disks+"-now"), Asking("16Mi"))
		create(ctx, source)
		eventuallyBound(ctx, source)
		snapshot := snapshotOf(source, stowagev1alpha1.LocalDriver, "of-local")
		create(ctx, snapshot)
		eventuallyReady(ctx, snapshot)
		content := contentOf(ctx, snapshot)
		handle := *content.Status.SnapshotHandle
		Expect(named.IsSnapshot(handle)).To(BeTrue(), "csi-snapshotter had %s made by the socket", handle)
		Expect(content.Labels).NotTo(HaveKey(stowagev1alpha1.BackendLabel))
		Expect(snapshotsOnNodes(ctx)).To(ConsistOf(handle))

		By("restoring it, and naming it in a content by hand")
		restored := Claim(ClaimNamed("restored"), InClass(disks+"-now"), Asking("16Mi"), func(claim *corev1.PersistentVolumeClaim) {
			claim.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: new("snapshot.storage.k8s.io"), Kind: "VolumeSnapshot", Name: snapshot.Name}
		})
		byHand := &snapshotv1.VolumeSnapshotContent{Spec: snapshotv1.VolumeSnapshotContentSpec{
			Driver: stowagev1alpha1.LocalDriver, DeletionPolicy: snapshotv1.VolumeSnapshotContentRetain,
			Source:            snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: &handle},
			VolumeSnapshotRef: corev1.ObjectReference{Namespace: Namespace, Name: "by-hand"},
		}}
		byHand.Name = "by-hand"
		create(ctx, restored, byHand)
		eventuallyBound(ctx, restored)
		Eventually(func(g Gomega) {
			g.Expect(users.Get(ctx, keyOf(byHand), byHand)).To(Succeed())
			g.Expect(byHand.Status).NotTo(BeNil())
			g.Expect(ptr.Deref(byHand.Status.ReadyToUse, false)).To(BeTrue(), "%+v", byHand.Status.Error)
		}).WithContext(ctx).Should(Succeed())
		Expect(*byHand.Status.CreationTime).To(Equal(*content.Status.CreationTime))

		By("restoring it by a call of the socket")
		connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
		Expect(err).NotTo(HaveOccurred())
		defer connection.Close()
		calls := csispec.NewControllerClient(connection)
		copied, err := calls.CreateVolume(ctx, &csispec.CreateVolumeRequest{
			Name: "copied", Parameters: map[string]string{stowagev1alpha1.BackendParameter: disks}, CapacityRange: &csispec.CapacityRange{RequiredBytes: 16 << 20},
			VolumeCapabilities: []*csispec.VolumeCapability{{
				AccessType: &csispec.VolumeCapability_Mount{Mount: &csispec.VolumeCapability_MountVolume{}},
				AccessMode: &csispec.VolumeCapability_AccessMode{Mode: csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
			}},
			VolumeContentSource: &csispec.VolumeContentSource{Type: &csispec.VolumeContentSource_Snapshot{
				Snapshot: &csispec.VolumeContentSource_SnapshotSource{SnapshotId: handle},
			}},
		})
		Expect(err).NotTo(HaveOccurred())
		_, err = calls.DeleteVolume(ctx, &csispec.DeleteVolumeRequest{VolumeId: copied.GetVolume().GetVolumeId()})
		Expect(err).NotTo(HaveOccurred())

		By("deleting the snapshot, which leaves both volumes")
		remove(ctx, byHand)
		eventuallyGone(ctx, byHand)
		Expect(snapshotsOnNodes(ctx)).To(ConsistOf(handle))
		remove(ctx, snapshot)
		eventuallyGone(ctx, snapshot)
		eventuallyGone(ctx, content)
		Expect(snapshotsOnNodes(ctx)).To(BeEmpty())
		for _, claim := range []*corev1.PersistentVolumeClaim{source, restored} {
			pv := eventuallyBound(ctx, claim)
			remove(ctx, claim)
			eventuallyGone(ctx, pv)
		}
	})
})

// snapshotsOnNodes are the names of the NodeVolumes that are snapshots.
func snapshotsOnNodes(ctx SpecContext) (names []string) {
	GinkgoHelper()
	list := &stowagev1alpha1.NodeVolumeList{}
	Expect(users.List(ctx, list)).To(Succeed())
	for i := range list.Items {
		if list.Items[i].Spec.SnapshotUID != "" {
			names = append(names, list.Items[i].Name)
		}
	}
	return names
}
