package stock_test

import (
	"context"
	"path/filepath"
	"strings"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/stowage-dev/stowage/test/harness/cluster"
	"github.com/stowage-dev/stowage/test/harness/controlplane"
)

var _ = Describe("Snapshots of a CSI driver with its own csi-snapshotter", Label("sidecars"), func() {
	It("go from the real snapshot-controller to Stowage, which binds them alike", func(ctx SpecContext) {
		driver := startDriver(ctx)
		driver.startSidecars(ctx)
		startSnapshotter(ctx, driver.socket("sidecars"))
		controller := startSnapshotController(ctx, movable)
		nameSecret(ctx)
		source := driver.use(ctx, "source")
		theirs := snapshotOf(source.claim, movable, "theirs")
		create(ctx, theirs)
		eventuallyReady(ctx, theirs)

		By("letting Stowage bind, with scope cluster")
		Expect(controller.Kill()).To(Succeed())
		standalone, err := controlplane.StandaloneControllers()
		Expect(err).NotTo(HaveOccurred())
		Expect(plane.SwitchControllers(ctx, standalone)).To(Succeed())
		Expect(world.manager.Stop()).To(Succeed())
		world.startManager(ctx, "cluster", "--bind-snapshots")
		DeferCleanup(func(ctx SpecContext) { backToClasses(ctx) })
		ours := snapshotOf(source.claim, movable, "ours")
		create(ctx, ours)
		eventuallyReady(ctx, ours)
		// An annotation goes after the snapshot is ready.
		Eventually(func() []string { return differences(fieldsOf(ctx, theirs), fieldsOf(ctx, ours)) }).WithContext(ctx).Should(BeEmpty())

		By("deleting both, which leaves the claim free")
		var handles []string
		for _, snapshot := range []*snapshotv1.VolumeSnapshot{theirs, ours} {
			content := contentOf(ctx, snapshot)
			handles = append(handles, *content.Status.SnapshotHandle)
			remove(ctx, snapshot)
			eventuallyGone(ctx, snapshot)
			eventuallyGone(ctx, content)
		}
		for _, handle := range handles {
			Expect(driver.snapshots(ctx)).NotTo(ContainElement(handle))
		}
		Expect(users.Get(ctx, keyOf(source.claim), source.claim)).To(Succeed())
		Expect(source.claim.Finalizers).To(ConsistOf("kubernetes.io/pvc-protection"))
		source.remove(ctx)
	})
})

// startSnapshotter starts the csi-snapshotter of a driver, which has a socket, for one spec.
func startSnapshotter(ctx context.Context, socket string) {
	GinkgoHelper()
	address := freeAddress()
	program := cluster.NewProgram(cluster.ProgramOptions{
		Name: "csi-snapshotter", LogFile: plane.Log("csi-snapshotter"), Path: binary("csi-snapshotter"), Ready: "http://" + address + "/metrics",
		Arguments: []string{
			"--csi-address=" + socket, "--kubeconfig=" + filepath.Join(world.dir, "kubeconfigs", "admin"),
			"--http-endpoint=" + address, "--retry-interval-start=200ms", "--v=5",
		},
	})
	Expect(cluster.InstallSnapshots(ctx, plane.Config)).To(Succeed())
	Expect(program.StartReady(ctx)).To(Succeed())
	DeferCleanup(program.Kill)
}

// snapshots are the ids of those that the driver has.
func (d *movableDriver) snapshots(ctx context.Context) (ids []string) {
	GinkgoHelper()
	answer, err := csispec.NewControllerClient(d.driver).ListSnapshots(ctx, &csispec.ListSnapshotsRequest{})
	Expect(err).NotTo(HaveOccurred())
	for _, entry := range answer.GetEntries() {
		ids = append(ids, entry.GetSnapshot().GetSnapshotId())
	}
	return ids
}

// nameSecret has the class of the driver's snapshots name a Secret, by a template.
func nameSecret(ctx context.Context) {
	GinkgoHelper()
	class := &snapshotv1.VolumeSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: movable}}
	Expect(users.Get(ctx, keyOf(class), class)).To(Succeed())
	class.Parameters = map[string]string{
		"csi.storage.k8s.io/snapshotter-secret-name": account, "csi.storage.k8s.io/snapshotter-secret-namespace": namespace,
	}
	Expect(users.Update(ctx, class)).To(Succeed())
}

func eventuallyReady(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(users.Get(ctx, keyOf(snapshot), snapshot)).To(Succeed())
		g.Expect(snapshot.Status).NotTo(BeNil())
		g.Expect(ptr.Deref(snapshot.Status.ReadyToUse, false)).To(BeTrue(), "%+v", snapshot.Status.Error)
	}).WithContext(ctx).Should(Succeed())
}

// fieldsOf are those of a VolumeSnapshot and its content, but for names and ids that no two share, and times.
func fieldsOf(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) map[string]string {
	GinkgoHelper()
	content := contentOf(ctx, snapshot)
	words := strings.NewReplacer(string(snapshot.UID), "SNAPSHOT", string(content.UID), "CONTENT", `"`+snapshot.Name+`"`, `"NAME"`)
	snapshot, content = snapshot.DeepCopy(), content.DeepCopy()
	snapshot.Status.CreationTime, content.Status.CreationTime, content.Status.SnapshotHandle = nil, nil, nil
	all := map[string]string{}
	snapshot.SetManagedFields(nil)
	flatten(all, "VolumeSnapshot", snapshot, words)
	content.SetManagedFields(nil)
	flatten(all, "VolumeSnapshotContent", content, words)
	return all
}
