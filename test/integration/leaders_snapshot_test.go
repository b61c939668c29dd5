package integration_test

import (
	"context"
	"path"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/api/compute/v1"
	"google.golang.org/api/option"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce"
	"github.com/stowage-dev/stowage/internal/gcemock"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/test/harness/cluster"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("With two managers that both believe that they lead, and a cloud whose answers are lost at times", func() {
	const sources, taken, kept = 3, 15, 10

	It("each VolumeSnapshot has one snapshot, a deleted one has none, and claims are restored from their own", func(ctx SpecContext) {
		Expect(cluster.InstallSnapshots(ctx, server.Config)).To(Succeed())
		cloud, endpoint := startCloud(100 * time.Millisecond)
		for range 2 {
			manager{scope: reconciler.ClusterScope, bindsSnapshots: true, kinds: []backend.Kind{gce.NewKind("this-cluster", noKeys{})}}.start()
		}
		DeferCleanup(removeEverything)
		DeferCleanup(users.DeleteAllOf, &snapshotv1.VolumeSnapshot{}, client.InNamespace(Namespace))
		class := &snapshotv1.VolumeSnapshotClass{
			ObjectMeta: metav1.ObjectMeta{Name: "cloud", Annotations: map[string]string{snapshots.DefaultClass: "true"}},
			Driver:     stowagev1alpha1.GCEDriver, DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
		}
		create(ctx, cloudBackend(endpoint), class, Class("cloud-now", stowagev1alpha1.GCEDriver, map[string]string{"backend": "cloud"}))
		DeferCleanup(users.Delete, class)
		inAnyOrder(sources, func(i int) { create(ctx, Claim(ClaimNamed(name("source", i)), InClass("cloud-now"), Asking("10Gi"))) })
		Eventually(boundClaims).WithArguments(ctx).WithTimeout(clearing).Should(Equal(sources))
		for _, method := range []string{"disks.createSnapshot", "snapshots.delete", "disks.insert"} {
			Expect(cloud.Inject(gcemock.Fault{Method: method, Count: 2, Rate: 0.3, Lost: true})).To(Succeed())
		}

		inAnyOrder(taken, func(i int) {
			snapshot := numberedSnapshot(i, name("source", i%sources))
			create(ctx, snapshot)
			if i%3 != 0 {
				create(ctx, restoredFrom(i))
				return
			}
			begun := client.Object(snapshot) // one manager may make its content as the other lets it go
			if i%2 != 0 {
				begun = &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: snapshots.ContentName(snapshot.UID)}}
			}
			Eventually(func(g Gomega) {
				g.Expect(users.Get(ctx, client.ObjectKeyFromObject(begun), begun)).To(Succeed())
				g.Expect(begun.GetFinalizers()).NotTo(BeEmpty())
			}).WithTimeout(clearing).WithPolling(time.Millisecond).Should(Succeed())
			Expect(users.Delete(ctx, snapshot)).To(Succeed())
		})

		Eventually(func(g Gomega) {
			wantedSnapshots, wantedDisks := wantedInCloud(ctx, g)
			g.Expect(wantedSnapshots).To(HaveLen(kept))
			g.Expect(wantedDisks).To(HaveLen(sources + kept))
			foundSnapshots, foundDisks := foundInCloud(ctx, g, endpoint)
			g.Expect(foundSnapshots).To(Equal(wantedSnapshots))
			g.Expect(foundDisks).To(Equal(wantedDisks))
		}).WithContext(ctx).WithTimeout(clearing).WithPolling(200 * time.Millisecond).Should(Succeed())

		By("deleting the snapshots, which leaves the disks that were restored")
		inAnyOrder(taken, func(i int) { Expect(client.IgnoreNotFound(users.Delete(ctx, numberedSnapshot(i, "")))).To(Succeed()) })
		Eventually(func(g Gomega) {
			contents := &snapshotv1.VolumeSnapshotContentList{}
			g.Expect(users.List(ctx, contents)).To(Succeed())
			g.Expect(contents.Items).To(BeEmpty())
			foundSnapshots, foundDisks := foundInCloud(ctx, g, endpoint)
			g.Expect(foundSnapshots).To(BeEmpty())
			g.Expect(foundDisks).To(HaveLen(sources + kept))
		}).WithContext(ctx).WithTimeout(clearing).WithPolling(200 * time.Millisecond).Should(Succeed())
	})
})

func numberedSnapshot(i int, of string) *snapshotv1.VolumeSnapshot {
	return &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name("snapshot", i)},
		Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &of}},
	}
}

func restoredFrom(i int) *corev1.PersistentVolumeClaim {
	return Claim(ClaimNamed(name("restored", i)), InClass("cloud-now"), Asking("10Gi"), func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: new(provisioned.SnapshotGroup), Kind: provisioned.SnapshotKind, Name: name("snapshot", i)}
	})
}

// wantedInCloud returns the disk of each snapshot that is ready, and the snapshot of each claim's disk, all by name.
func wantedInCloud(ctx context.Context, g Gomega) (ofSnapshots, ofDisks map[string]string) {
	claims, all, uids := &corev1.PersistentVolumeClaimList{}, &snapshotv1.VolumeSnapshotList{}, map[string]string{}
	g.Expect(users.List(ctx, claims)).To(Succeed())
	g.Expect(users.List(ctx, all)).To(Succeed())
	ofSnapshots, ofDisks = map[string]string{}, map[string]string{}
	for _, snapshot := range all.Items {
		g.Expect(snapshot.Status).To(HaveField("ReadyToUse", HaveValue(BeTrue())), snapshot.Name)
		uids[snapshot.Name] = backend.SnapshotID(snapshot.UID)
		source := &corev1.PersistentVolumeClaim{}
		g.Expect(users.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: *snapshot.Spec.Source.PersistentVolumeClaimName}, source)).To(Succeed())
		ofSnapshots[uids[snapshot.Name]] = source.Spec.VolumeName
	}
	for _, claim := range claims.Items {
		g.Expect(claim.Status.Phase).To(Equal(corev1.ClaimBound), claim.Name)
		ofDisks[claim.Spec.VolumeName] = ""
		if claim.Spec.DataSource != nil {
			ofDisks[claim.Spec.VolumeName] = uids[claim.Spec.DataSource.Name]
		}
	}
	return ofSnapshots, ofDisks
}

// foundInCloud returns the disk of each snapshot, and the snapshot of each disk, all by name.
func foundInCloud(ctx context.Context, g Gomega, endpoint string) (ofSnapshots, ofDisks map[string]string) {
	service, err := compute.NewService(ctx, option.WithEndpoint(endpoint), option.WithoutAuthentication())
	g.Expect(err).NotTo(HaveOccurred())
	ofSnapshots, ofDisks = map[string]string{}, map[string]string{}
	list, err := service.Snapshots.List(cloudProject).Context(ctx).Do()
	g.Expect(err).NotTo(HaveOccurred())
	for _, snapshot := range list.Items {
		ofSnapshots[snapshot.Name] = path.Base(snapshot.SourceDisk)
	}
	for _, zone := range []string{zoneA, zoneB} {
		list, err := service.Disks.List(cloudProject, zone).Context(ctx).Do()
		g.Expect(err).NotTo(HaveOccurred())
		for _, disk := range list.Items {
			g.Expect(ofDisks).NotTo(HaveKey(disk.Name), "there are two")
			ofDisks[disk.Name] = ""
			if disk.SourceSnapshot != "" {
				ofDisks[disk.Name] = path.Base(disk.SourceSnapshot)
			}
		}
	}
	return ofSnapshots, ofDisks
}
