package controllers

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/nodevolume"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

const (
	lostUID = "7c9d3a52-0000-4000-8000-000000000001"
	lostID  = "pvc-" + lostUID
)

// foundVolume is a volume on a disk as its owner record describes it.
func foundVolume() stowagev1alpha1.UnrecordedVolume {
	return stowagev1alpha1.UnrecordedVolume{
		ID: lostID, ClaimNamespace: Namespace, ClaimName: "data", ClaimUID: lostUID, Layout: stowagev1alpha1.LayoutDirectory,
	}
}

// reportFound reports what is on a disk without a NodeVolume, as the node's agent does.
func (w *world) reportFound(node string, volumes ...stowagev1alpha1.UnrecordedVolume) {
	GinkgoHelper()
	w.report("fast", node, "1Gi", metav1.ConditionTrue)
	w.changeDisk(node, func(disk *stowagev1alpha1.NodeDisk) {
		disk.Status.Unrecorded = &stowagev1alpha1.UnrecordedVolumes{Count: int32(len(volumes)), Volumes: volumes}
	})
}

func (w *world) changeDisk(node string, change func(*stowagev1alpha1.NodeDisk)) {
	GinkgoHelper()
	disk := &stowagev1alpha1.NodeDisk{ObjectMeta: metav1.ObjectMeta{Name: nodevolume.NodeDiskName("fast", node)}}
	w.get(disk)
	change(disk)
	Expect(w.direct.Status().Update(context.Background(), disk)).To(Succeed())
}

// standingForLost stands for the volume that was found.
func standingForLost(options ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := Volume("restored", append([]func(*corev1.PersistentVolume){OnNode("node-a"), ReservedTo("data"), func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: stowagev1alpha1.LocalDriver, VolumeHandle: lostID,
			VolumeAttributes: map[string]string{
				stowagev1alpha1.BackendAttribute: "fast", stowagev1alpha1.PathAttribute: string(LocalBackend("fast").Spec.Local.Path) + "/" + lostID,
				stowagev1alpha1.LayoutAttribute: "Directory",
			},
		}}
	}}, options...)...)
	return pv
}

// adoptable is a cluster in which a volume was found that a volume object stands for.
func adoptable(options ...func(*corev1.PersistentVolume)) (*world, *corev1.PersistentVolume) {
	GinkgoHelper()
	w, _ := diskWorld()
	w.lookAtDisks()
	w.reportFound("node-a", foundVolume())
	pv := standingForLost(options...)
	w.create(pv)
	return w, pv
}

func (w *world) adopt(pv *corev1.PersistentVolume) {
	GinkgoHelper()
	_, err := w.adopts.Reconcile(w.logging(), wake.Request(pv))
	Expect(err).NotTo(HaveOccurred())
}

// lostVolume is the NodeVolume that was created again; nil if none was.
func (w *world) lostVolume() *stowagev1alpha1.NodeVolume {
	GinkgoHelper()
	volume, err := liveread.Find(context.Background(), lostID, &stowagev1alpha1.NodeVolume{}, w.direct)
	Expect(err).NotTo(HaveOccurred())
	return volume
}

var _ = Describe("A local volume without its NodeVolume", func() {
	It("has it again, with its old identity, once its agent found it and a volume stands for it", func() {
		w, pv := adoptable()

		w.adopt(pv)

		volume := w.lostVolume()
		Expect(volume.Labels).To(HaveKeyWithValue(stowagev1alpha1.BackendLabel, "fast"))
		Expect(volume.Finalizers).To(ContainElement(stowagev1alpha1.NodeVolumeFinalizer))
		Expect(volume.Spec).To(Equal(stowagev1alpha1.NodeVolumeSpec{
			NodeName: "node-a", Backend: "fast", Path: LocalBackend("fast").Spec.Local.Path, Capacity: resource.MustParse("1Gi"),
			VolumeMode: corev1.PersistentVolumeFilesystem, Layout: stowagev1alpha1.LayoutDirectory, Adopt: true,
			ClaimRef: stowagev1alpha1.ClaimReference{Namespace: Namespace, Name: "data", UID: lostUID},
		}))
		Expect(w.newEvents()).To(ContainElement(HavePrefix("Normal NodeVolumeAdopted")))
	})

	It("takes its old claim from the PersistentVolume if it has no owner record", func() {
		w, pv := adoptable()
		w.reportFound("node-a", stowagev1alpha1.UnrecordedVolume{ID: lostID})
		w.adopt(pv)
		Expect(w.lostVolume().Spec.ClaimRef).To(Equal(stowagev1alpha1.ClaimReference{Namespace: Namespace, Name: "data", UID: lostUID}))
	})

	It("keeps its old claim where the volume object is reserved for another", func() {
		w, pv := adoptable(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.Name, pv.Spec.ClaimRef.UID = "next", "another" })
		w.adopt(pv)
		Expect(w.lostVolume().Spec.ClaimRef.Name).To(Equal("data"))
	})

	It("may be beyond those that its disk names", func() {
		w, pv := adoptable()
		w.reportFound("node-a", stowagev1alpha1.UnrecordedVolume{ID: "pvc-0"})
		w.changeDisk("node-a", func(disk *stowagev1alpha1.NodeDisk) { disk.Status.Unrecorded.Count = 2 })
		w.adopt(pv)
		Expect(w.lostVolume()).NotTo(BeNil())
	})

	DescribeTable("stays without", func(spoil func(*world, *corev1.PersistentVolume), says string) {
		w, pv := adoptable()
		spoil(w, pv)

		w.adopt(pv)
		w.adopt(pv)

		Expect(w.lostVolume()).To(BeNil())
		if says == "" {
			Expect(eventsWith(w.newEvents(), "NodeVolumeNotAdopted")).To(BeEmpty())
		} else {
			Expect(eventsWith(w.newEvents(), "NodeVolumeNotAdopted")).To(ConsistOf(ContainSubstring(says)))
		}
	},
		Entry("while its disk isn't Ready", func(w *world, _ *corev1.PersistentVolume) {
			w.changeDisk("node-a", func(disk *stowagev1alpha1.NodeDisk) { disk.Status.Conditions[0].Status = metav1.ConditionFalse })
		}, ""),
		Entry("on a disk that isn't accepted", func(w *world, _ *corev1.PersistentVolume) {
			w.changeDisk("node-a", func(disk *stowagev1alpha1.NodeDisk) { disk.Status.Identity = nil })
		}, ""),
		Entry("where its disk doesn't have it", func(w *world, _ *corev1.PersistentVolume) { w.reportFound("node-a") }, ""),
		Entry("on a node that its volume object doesn't allow", func(w *world, _ *corev1.PersistentVolume) {
			w.reportFound("node-a")
			w.reportFound("node-b", foundVolume())
		}, ""),
		Entry("while its volume object is being deleted", func(w *world, pv *corev1.PersistentVolume) {
			update(w, pv, func(pv *corev1.PersistentVolume) { pv.Finalizers = []string{stowagev1alpha1.ReclaimFinalizer} })
			w.delete(pv)
		}, ""),
		Entry("where another volume object stands for it", func(w *world, _ *corev1.PersistentVolume) {
			other := standingForLost()
			other.Name = "other"
			w.create(other)
		}, "PersistentVolume other has the volumeHandle "+lostID),
		Entry("where it was an image", func(w *world, _ *corev1.PersistentVolume) {
			image := foundVolume()
			image.Layout = stowagev1alpha1.LayoutImage
			w.reportFound("node-a", image)
		}, `layout is "Directory", and the volume's owner record says "Image"`),
	)

	DescribeTable("stays without where its volume object", func(option func(*corev1.PersistentVolume), says string) {
		w, pv := adoptable(option)
		w.reportFound("node-a", stowagev1alpha1.UnrecordedVolume{ID: lostID})
		w.reportFound("node-b", stowagev1alpha1.UnrecordedVolume{ID: lostID})
		w.adopt(pv)
		Expect(w.lostVolume()).To(BeNil())
		Expect(eventsWith(w.newEvents(), "NodeVolumeNotAdopted")).To(ConsistOf(ContainSubstring(says)))
	},
		Entry("has another path", func(pv *corev1.PersistentVolume) {
			pv.Spec.CSI.VolumeAttributes[stowagev1alpha1.PathAttribute] = "/var/lib/stowage/slow/" + lostID
		}, "the volume is in "+string(LocalBackend("fast").Spec.Local.Path)),
		Entry("names no claim, and the disk neither", func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }, "name the claim that it was made for"),
		Entry("allows both of the nodes that have it", func(pv *corev1.PersistentVolume) { pv.Spec.NodeAffinity = nil }, "name one"),
	)

	It("is not taken from a NodeVolume that a cache hasn't seen", func() {
		w, pv := adoptable()
		existing := nodeVolume("fast", "node-b")
		existing.Name, existing.Spec.ClaimRef.UID = lostID, lostUID
		w.create(existing)
		w.views.adopts.Client = withoutNodeVolumes{w}

		w.adopt(pv)

		Expect(w.lostVolume().Spec.NodeName).To(Equal("node-b"))
		Expect(eventsWith(w.newEvents(), "NodeVolumeNotAdopted")).To(BeEmpty())
	})

	It("is not created for a PersistentVolume that only a cache still shows", func() {
		w, pv := adoptable()
		w.delete(pv)
		w.views.adopts.Client = stillShowing{w, pv}
		w.adopt(pv)
		Expect(w.lostVolume()).To(BeNil())
	})

	for _, kind := range []fault{lost, unanswered, contended} {
		It("has it again, also when the write is "+string(kind), func() {
			w, pv := adoptable()
			w.faults = map[int]fault{w.written: kind}
			_, _ = w.adopts.Reconcile(context.Background(), wake.Request(pv))
			w.restart()
			w.adopt(pv)
			Expect(w.lostVolume()).NotTo(BeNil())
		})
	}

	It("wakes its volume object when it is found, and no other", func() {
		w, pv := adoptable()
		other := standingForLost(func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeHandle = "pvc-other" })
		other.Name = "other"
		w.create(other)
		disk := &stowagev1alpha1.NodeDisk{ObjectMeta: metav1.ObjectMeta{Name: nodevolume.NodeDiskName("fast", "node-a")}}
		w.get(disk)
		Expect(w.adopts.VolumesFoundOn(context.Background(), disk)).To(ConsistOf(wake.Request(pv)))
	})
})

// withoutNodeVolumes is a cache that has seen no NodeVolumes yet.
type withoutNodeVolumes struct{ client.Client }

func (c withoutNodeVolumes) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, is := object.(*stowagev1alpha1.NodeVolume); is {
		return apierrors.NewNotFound(stowagev1alpha1.GroupVersion.WithResource("nodevolumes").GroupResource(), key.Name)
	}
	return c.Client.Get(ctx, key, object, options...)
}

// stillShowing is a cache that still has a volume object.
type stillShowing struct {
	client.Client
	pv *corev1.PersistentVolume
}

func (c stillShowing) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if pv, is := object.(*corev1.PersistentVolume); is && key.Name == c.pv.Name {
		c.pv.DeepCopyInto(pv)
		return nil
	}
	return c.Client.Get(ctx, key, object, options...)
}
