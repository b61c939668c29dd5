package controllers

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("An attachment that is deleted", func() {
	It("is detached where its node doesn't use the volume, in one write", func() {
		w, attachment, pv := attached()
		w.delete(attachment)

		before := w.written
		w.settle()

		Expect(w.written - before).To(Equal(1))
		expectDetached(w, attachment, pv)
	})

	DescribeTable("stays while a Ready node has not released the volume, for as long as it takes",
		func(not func(*corev1.PersistentVolume) func(*corev1.Node)) {
			w, attachment, pv := attached(forcing("0s"))
			node := firstNode(w)
			updateNode(w, node, together(not(pv), outOfService))
			w.delete(attachment)
			w.newEvents()
			for range 3 {
				w.settle()
				w.clock.SetTime(w.clock.Now().Add(10 * time.Minute))
			}
			expectStays(w, attachment, pv, "the node is Ready and still uses the volume")
			Expect(w.newEvents()).To(HaveLen(2))

			updateNode(w, node, func(node *corev1.Node) { node.Status.VolumesInUse, node.Status.VolumesAttached = nil, nil })
			w.settle()

			expectDetached(w, attachment, pv)
		},
		Entry("because it uses it", using),
		Entry("because it is in volumesAttached", markedAttached),
	)

	It("is detached though a pod came back to its node at the same time, and waits for that: the node lists what it waits for", func() {
		w, attachment, pv := attached()
		w.create(Pod("back", "node-1", pv.Spec.ClaimRef.Name))
		updateNode(w, firstNode(w), together(using(pv), readyFor(2*time.Hour)))
		w.delete(attachment)

		w.settle()

		expectDetached(w, attachment, pv)
		Expect(w.newEvents()).NotTo(ContainElement(ContainSubstring("ForcedDetachVolume")))
	})

	DescribeTable("stays while a node that has long been Ready uses the volume, though it is not in volumesAttached any more: force began that and was interrupted",
		func(inBetween func(*world, *corev1.PersistentVolume), changes ...func(*corev1.Node)) {
			w, attachment, pv := attached()
			inBetween(w, pv)
			updateNode(w, firstNode(w), together(append(changes, using(pv), readyFor(2*time.Hour))...))
			w.delete(attachment)

			w.settle()

			expectStays(w, attachment, pv, "the node is Ready and still uses the volume")
		},
		Entry("and its pod is gone, the volume still being unmounted", func(*world, *corev1.PersistentVolume) {}),
		Entry("and its pod is ending, though another came back", func(w *world, pv *corev1.PersistentVolume) {
			ending := Pod("ending", "node-1", pv.Spec.ClaimRef.Name)
			ending.Finalizers = []string{"example.com/ending"}
			w.create(ending, Pod("back", "node-1", pv.Spec.ClaimRef.Name))
			w.delete(ending)
		}),
		Entry("and its pod runs", func(w *world, pv *corev1.PersistentVolume) {
			running := Pod("running", "node-1", pv.Spec.ClaimRef.Name)
			w.create(running)
			running.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Started: new(true)}}
			running.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
			Expect(w.direct.Status().Update(GinkgoT().Context(), running)).To(Succeed())
		}),
		Entry("by a taint that was not removed, which kube-controller-manager honors on Ready nodes, too", func(w *world, pv *corev1.PersistentVolume) {
			w.create(Pod("back", "node-1", pv.Spec.ClaimRef.Name))
		}, outOfService),
	)

	It("stays while a node has been silent for less than the policy says, and is forced after it", func() {
		w, attachment, pv := attached(forcing("6m"))
		node := firstNode(w)
		updateNode(w, node, together(using(pv), silentFor(w, 5*time.Minute)))
		w.delete(attachment)
		w.settle()
		expectStays(w, attachment, pv, "it is forced after 6m")
		w.newEvents()

		w.clock.SetTime(w.clock.Now().Add(2 * time.Minute))
		w.settle()

		expectDetached(w, attachment, pv)
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("ForcedDetachVolume detaching it from node node-1, which has not released it")))
	})

	It("is never forced by time where the policy is Never", func() {
		w, attachment, pv := attached(forcing("Never"))
		node := firstNode(w)
		updateNode(w, node, together(using(pv), silentFor(w, 24*time.Hour)))
		w.delete(attachment)

		w.settle()

		expectStays(w, attachment, pv, "forceDetachAfter is Never")
	})

	It("is forced by a new policy that allows it", func() {
		w, attachment, pv := attached(forcing("Never"))
		node := firstNode(w)
		updateNode(w, node, together(using(pv), silentFor(w, 24*time.Hour)))
		w.delete(attachment)
		w.settle()

		update(w, cloud(), forcing("10m"))
		w.settle()

		expectDetached(w, attachment, pv)
	})

	DescribeTable("is forced at once where a silent node's machine is off",
		func(isOff func(*world, *corev1.Node)) {
			w, attachment, pv := attached(forcing("Never"))
			node := firstNode(w)
			updateNode(w, node, together(using(pv), markedAttached(pv), silentFor(w, time.Second)))
			w.delete(attachment)
			w.settle()
			expectStays(w, attachment, pv, "Never")

			isOff(w, node)
			w.settle()

			expectDetached(w, attachment, pv)
		},
		Entry("because a person says so", func(w *world, node *corev1.Node) { updateNode(w, node, outOfService) }),
		Entry("because the cloud says that it is stopped", func(w *world, node *corev1.Node) {
			w.storage.SetMachine(identityOf(node), backend.MachineStopped)
		}),
		Entry("because the cloud says that it is gone", func(w *world, node *corev1.Node) {
			w.storage.SetMachine(identityOf(node), backend.MachineGone)
		}),
	)

	It("stays where the Node object is gone and the machine runs, until that is gone, too", func() {
		w, attachment, pv := attached(forcing("0s"))
		node := firstNode(w)
		w.delete(node)
		w.delete(attachment)
		w.clock.SetTime(w.clock.Now().Add(time.Hour))
		w.settle()
		expectStays(w, attachment, pv, "there is no Node object")

		w.storage.SetMachine(identityOf(node), backend.MachineGone)
		w.settle()

		expectDetached(w, attachment, pv)
	})

	It("is forced by time though the cloud doesn't answer", func() {
		w, attachment, pv := attached(forcing("6m"))
		node := firstNode(w)
		updateNode(w, node, together(using(pv), silentFor(w, time.Hour)))
		w.delete(attachment)
		w.storage.FailObserving(backend.Unavailable.Errorf("503"))

		w.settle()

		expectDetached(w, attachment, pv)
	})

	It("stays until a node that registered again had time to report what it uses", func() {
		w, attachment, pv := attached()
		node := firstNode(w)
		w.delete(node)
		later := metav1.NewTime(attachment.CreationTimestamp.Add(2 * time.Second))
		Eventually(func() bool { return time.Now().After(later.Time) }).WithTimeout(5 * time.Second).Should(BeTrue())
		again := machine("node-1")
		w.create(again)
		w.delete(attachment)
		w.clock.SetTime(time.Now())
		w.settle()
		expectStays(w, attachment, pv, "registered again")

		w.clock.SetTime(time.Now().Add(2 * time.Minute))
		w.settle()

		expectDetached(w, attachment, pv)
	})

	It("says why the backend fails, and goes when it doesn't any more", func() {
		w, attachment, pv := attached()
		w.delete(attachment)
		busy := backend.Unavailable.Errorf("the zone is out of order")
		w.storage.FailNext(busy, busy)
		_ = w.round()
		_ = w.round()
		expectStays(w, attachment, pv, "the zone is out of order")

		w.settle()

		expectDetached(w, attachment, pv)
	})

	It("stays while the detach goes on", func() {
		w, attachment, pv := attached()
		w.delete(attachment)
		w.storage.FailNext(backend.InProgress.Errorf("operation detach-1"))
		_ = w.round()
		Expect(w.gone(attachment)).To(BeFalse())

		w.settle()

		expectDetached(w, attachment, pv)
	})

	It("waits for its StorageBackend to be created again", func() {
		w, attachment, pv := attached()
		object := cloud()
		update(w, object, func(object *stowagev1alpha1.StorageBackend) { object.Finalizers = nil })
		w.delete(object)
		w.delete(attachment)
		w.settle()
		expectStays(w, attachment, pv, "StorageBackend cloud is gone: create it again")

		w.create(cloud())
		w.settle()

		expectDetached(w, attachment, pv)
	})

	It("is detached though its volume object and its node are gone", func() {
		w, attachment, pv := attached()
		node := firstNode(w)
		update(w, pv, func(pv *corev1.PersistentVolume) { pv.Finalizers = nil })
		w.delete(pv)
		w.delete(node)
		w.storage.SetMachine(identityOf(node), backend.MachineStopped)
		w.delete(attachment)

		w.settle()

		expectDetached(w, attachment, pv)
	})

	It("stays, with an error, if nothing records what it attached", func() {
		w, attachment, pv := attached()
		update(w, attachment, func(attachment *storagev1.VolumeAttachment) { attachment.Annotations = nil })
		w.views.attachments.Client = withoutVolume{w, pv.Name}
		w.views.attachments.live.Reader = withoutVolume{w, pv.Name}
		w.delete(attachment)

		_, _ = w.attachments.Reconcile(GinkgoT().Context(), wake.Request(attachment))

		expectStays(w, attachment, pv, "nothing records which disk is attached")
	})

	It("takes no other volume from the node, whatever a user wrote on it", func() {
		w, attachment, pv := attached()
		node := firstNode(w)
		w.storage.AttachBehind("another", identityOf(node))
		update(w, attachment, func(attachment *storagev1.VolumeAttachment) {
			attachment.Annotations[stowagev1alpha1.AttachmentAnnotation] = `{"backend":"cloud","volume":"another"}`
		})
		w.delete(attachment)

		w.settle()

		expectDetached(w, attachment, pv)
		Expect(w.storage.AttachedTo("another")).To(HaveLen(1))
	})

	It("leaves an attachment of the same name alone that was created since, and that the cache does not show", func() {
		w, attachment, pv := attached()
		node := firstNode(w)
		w.delete(attachment)
		seen := attachment.DeepCopy()
		w.get(seen)
		w.settle()
		again := attachmentTo(node.Name, pv)
		w.create(again)
		w.settle()
		w.views.attachments.Client = stale{w, []client.Object{seen}}

		_, _ = w.attachments.Reconcile(GinkgoT().Context(), wake.Request(seen))

		expectAttached(w, again, pv, node)
	})
})

var _ = Describe("Detaching that is interrupted", func() {
	for _, kind := range []fault{lost, unanswered, contended} {
		It("ends with nothing attached where its write is "+string(kind), func() {
			w, pv, node := cloudedIn(newWorldIn(newMemory()))
			attachment := attachmentTo(node.Name, pv)
			w.create(attachment)
			w.settle()
			w.delete(attachment)
			w.faults = map[int]fault{w.written: kind}

			_ = w.round()
			w.restart()
			w.settle()

			expectDetached(w, attachment, pv)
		})
	}
})

var _ = Describe("A volume that is attached", func() {
	It("keeps its data until it is detached, though its claim is gone", func() {
		w, attachment, pv := attached()
		w.delete(Claim())
		w.settle()
		Expect(w.gone(pv)).To(BeFalse())
		Expect(w.storage.Has(pv.Spec.CSI.VolumeHandle)).To(BeTrue())
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("has a VolumeAttachment to node node-1")))

		w.delete(attachment)
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
	})

	It("keeps its data though the cache has not seen the attachment", func() {
		w, attachment, pv := attached()
		w.delete(Claim())
		w.views.volumes.Client = withoutAttachments{w}
		w.settle()
		Expect(w.storage.Calls()).NotTo(ContainElement("Delete " + pv.Name))

		w.delete(attachment)
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
	})

	It("keeps its data while a node uses it and the attachment was removed by hand", func() {
		w, attachment, pv := attached()
		node := firstNode(w)
		updateNode(w, node, using(pv))
		update(w, attachment, func(attachment *storagev1.VolumeAttachment) { attachment.Finalizers = nil })
		w.delete(attachment)
		w.storage.DetachBehind(pv.Name)
		w.delete(Claim())
		w.settle()
		Expect(w.storage.Has(pv.Name)).To(BeTrue())
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("node node-1 still lists volume")))

		updateNode(w, node, func(node *corev1.Node) { node.Status.VolumesInUse = nil })
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
	})
})

// readyFor makes a node have been Ready for some time.
func readyFor(since time.Duration) func(*corev1.Node) {
	return func(node *corev1.Node) {
		node.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Now().Add(-since))
	}
}
