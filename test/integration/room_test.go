package integration_test

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/local"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("With a full disk", func() {
	const waiting = 20

	It("claims that wait for room say so once, however often the free room changes", func(ctx SpecContext) {
		storage := clientOf(asManager(reconciler.ClusterScope))
		kind := local.NewKind(storage, storage, "/var/lib/stowage")
		manager{scope: reconciler.ClusterScope, kinds: []backend.Kind{kind}, namespace: apiserver.Namespace}.start()
		DeferCleanup(removeEverything)
		DeferCleanup(refuseVolumes)
		create(ctx, Node("node-a"), LocalBackend("disks", onDisks("/var/lib/stowage", storagev1.VolumeBindingImmediate)))
		reportRoom(ctx, "100Mi")
		// The others come when the manager knows the class, the backend and the disk.
		first := Claim(ClaimNamed("first"), InClass("disks"))
		create(ctx, first)
		Eventually(notesOf).WithArguments(first, "ProvisioningFailed").WithContext(ctx).WithTimeout(soon).
			Should(ContainElement(ContainSubstring("has room")))
		var claims []*corev1.PersistentVolumeClaim
		for i := range waiting {
			claim := Claim(ClaimNamed(fmt.Sprintf("crowded-%d", i)), InClass("disks"))
			create(ctx, claim)
			claims = append(claims, claim)
		}
		for _, claim := range claims {
			eventuallyWaits(ctx, claim, "ProvisioningFailed")
		}

		for i := range 10 {
			reportRoom(ctx, fmt.Sprintf("%dMi", 200+i))
			reportRoom(ctx, fmt.Sprintf("%dMi", 100+i))
		}
		// The last round has come as far as the claims that find room now. Several may find
		// the same room: the agent makes one volume in it.
		reportRoom(ctx, "2Gi")
		Eventually(askedFor).WithContext(ctx).WithTimeout(soon).Should(BeNumerically(">=", 2))

		news := 0
		for _, claim := range claims {
			before := claim.ResourceVersion
			Expect(users.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
			if claim.ResourceVersion != before {
				news++
			}
			Expect(notesOf(ctx, claim, "ProvisioningFailed")).To(HaveLen(1), claim.Name)
		}
		request, err := askedFor(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(news).To(BeNumerically("<=", request), "only the claims that found room have something to say")
	})
})

var _ = Describe("Beside kube-controller-manager", func() {
	It("a volume that is being made on a node goes with its claim", func(ctx SpecContext) {
		storage := clientOf(asManager(reconciler.ClassesScope))
		kind := local.NewKind(storage, storage, "/var/lib/stowage")
		manager{scope: reconciler.ClassesScope, kinds: []backend.Kind{kind}, namespace: apiserver.Namespace}.start()
		DeferCleanup(removeEverything)
		create(ctx, Node("node-a"), LocalBackend("disks", onDisks("/var/lib/stowage", storagev1.VolumeBindingImmediate)))
		reportRoom(ctx, "2Gi")
		claim := Claim(InClass("disks"), askingOf(stowagev1alpha1.LocalDriver))
		create(ctx, claim)
		Eventually(askedFor).WithContext(ctx).WithTimeout(soon).Should(Equal(1))

		Expect(users.Delete(ctx, claim)).To(Succeed())
		// What protects it is kube-controller-manager's to take off.
		Eventually(func(g Gomega) {
			g.Expect(users.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
			controllerutil.RemoveFinalizer(claim, "kubernetes.io/pvc-protection")
			g.Expect(users.Update(ctx, claim)).To(Succeed())
		}).WithContext(ctx).WithTimeout(soon).Should(Succeed())

		refuseVolumes(ctx)
		Expect(askedFor(ctx)).To(BeZero())
	})
})

// reportRoom says how much of its disk is free, as the agent of node-a does.
func reportRoom(ctx context.Context, available string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		disks := &stowagev1alpha1.NodeDiskList{}
		g.Expect(users.List(ctx, disks)).To(Succeed())
		g.Expect(disks.Items).To(HaveLen(1))
		disk := &disks.Items[0]
		disk.Status.Total, disk.Status.Available = new(resource.MustParse("100Gi")), new(resource.MustParse(available))
		meta.SetStatusCondition(&disk.Status.Conditions, metav1.Condition{
			Type: stowagev1alpha1.ReadyCondition, Status: metav1.ConditionTrue, Reason: stowagev1alpha1.ReasonReady,
		})
		g.Expect(users.Status().Update(ctx, disk)).To(Succeed())
	}).WithContext(ctx).WithTimeout(soon).Should(Succeed())
}

// askedFor counts the volumes that agents are asked to make.
func askedFor(ctx context.Context) (int, error) {
	volumes := &stowagev1alpha1.NodeVolumeList{}
	err := users.List(ctx, volumes)
	return len(volumes.Items), err
}

// refuseVolumes deletes all claims, and is the agent that has room for none while they go.
func refuseVolumes(ctx SpecContext) {
	Expect(users.DeleteAllOf(ctx, &corev1.PersistentVolumeClaim{}, client.InNamespace(corev1.NamespaceDefault))).To(Succeed())
	Eventually(func(g Gomega) {
		volumes, claims := &stowagev1alpha1.NodeVolumeList{}, &corev1.PersistentVolumeClaimList{}
		g.Expect(users.List(ctx, volumes)).To(Succeed())
		for i := range volumes.Items {
			g.Expect(client.IgnoreNotFound(refuse(ctx, &volumes.Items[i]))).To(Succeed())
		}
		g.Expect(users.List(ctx, claims)).To(Succeed())
		g.Expect(claims.Items).To(BeEmpty())
		g.Expect(volumes.Items).To(BeEmpty())
	}).WithContext(ctx).WithTimeout(clearing).Should(Succeed())
}

// refuse answers for one volume, and lets go of it where it is to go.
func refuse(ctx context.Context, volume *stowagev1alpha1.NodeVolume) error {
	before := volume.DeepCopy()
	if !volume.DeletionTimestamp.IsZero() {
		volume.Finalizers = nil
		return users.Patch(ctx, volume, client.MergeFrom(before))
	}
	meta.SetStatusCondition(&volume.Status.Conditions, metav1.Condition{
		Type: stowagev1alpha1.ProvisionedCondition, Status: metav1.ConditionFalse, Reason: stowagev1alpha1.ReasonExhausted,
		ObservedGeneration: volume.Generation,
	})
	volume.Status.ObservedGeneration = volume.Generation
	return users.Status().Patch(ctx, volume, client.MergeFrom(before))
}

// notesOf returns the notes of the events with a reason that name a claim, one for each
// time that it was sent.
func notesOf(ctx context.Context, claim *corev1.PersistentVolumeClaim, reason string) []string {
	GinkgoHelper()
	list := &eventsv1.EventList{}
	Expect(users.List(ctx, list, client.InNamespace(claim.Namespace))).To(Succeed())
	var notes []string
	for _, event := range list.Items {
		if event.Regarding.UID != claim.UID || event.Reason != reason {
			continue
		}
		notes = append(notes, event.Note)
		if event.Series != nil {
			notes = append(notes, slices.Repeat([]string{event.Note}, int(event.Series.Count))...)
		}
	}
	return notes
}
