package controllers

import (
	"context"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/expansion"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("The growth of a claim", func() {
	for _, kind := range []fault{lost, unanswered, contended} {
		It("ends the same whichever of its writes is "+string(kind), func() {
			for number := range 3 {
				w := newWorldIn(newMemory())
				claim := w.boundClaim()
				w.interrupt(claim, "2Gi", number, kind)

				expectExpanded(w, claim, "2Gi")
			}
		})

		It("ends with the node's part, whichever of its writes is "+string(kind), func() {
			for number := range 3 {
				w := newWorldIn(newMemory())
				claim := w.boundClaim()
				w.storage.SetOnNode()
				w.interrupt(claim, "2Gi", number, kind)

				Expect(w.volumeOf(claim).Spec.Capacity.Storage().String()).To(Equal("2Gi"))
				Expect(expansion.ResizeStatus(claim)).To(Equal(corev1.PersistentVolumeClaimNodeResizePending))
				Expect(claim.Status.Capacity.Storage().String()).To(Equal("1Gi"))
			}
		})
	}

	It("ends the same when the backend's answer is lost", func() {
		w := newWorldIn(newMemory())
		claim := w.boundClaim()
		w.serve(byName{"disks": &mumbling{Backend: w.storage}})
		update(w, claim, Asking("2Gi"))
		_ = w.round()
		Expect(w.volumeOf(claim).Spec.Capacity.Storage().String()).To(Equal("1Gi"), "nothing records that it has more")

		w.requestSize(claim, "2Gi")

		expectExpanded(w, claim, "2Gi")
	})

	It("reports what the storage really got, if that is more", func() {
		w := newWorldIn(newMemory())
		claim := w.boundClaim()
		w.serve(byName{"disks": rounding{w.storage}})

		w.requestSize(claim, "1500Mi")

		expectExpanded(w, claim, "2Gi")
	})

	It("is grown by a backend that knows how it is used", func() {
		w := newWorldIn(newMemory())
		claim := w.boundClaim()
		asked := &noting{Backend: w.storage}
		w.serve(byName{"disks": asked})

		w.requestSize(claim, "2Gi")

		Expect(asked.volume).To(HaveField("Name", claim.Spec.VolumeName))
	})

	It("is not reported as done while the storage has less", func() {
		w := newWorldIn(newMemory())
		claim := w.boundClaim()
		w.serve(byName{"disks": idle{w.storage}})

		w.requestSize(claim, "2Gi")

		Expect(w.volumeOf(claim).Spec.Capacity.Storage().String()).To(Equal("1Gi"))
		Expect(claim.Status.Capacity.Storage().String()).To(Equal("1Gi"))
	})

	It("is refused where the class does not allow it and no API server looked", func() {
		w := newWorldIn(newMemory())
		claim := Claim(InClass("disks"))
		w.create(LocalBackend("disks"), claim)
		w.settle()
		w.newEvents()

		w.requestSize(claim, "2Gi")

		Expect(w.expansions()).To(BeEmpty())
		Expect(w.newEvents()).To(HaveExactElements(ContainSubstring("VolumeResizeFailed StorageClass disks does not let claims grow")))
	})

	It("goes on if the class is gone since the request", func() {
		w := newWorldIn(newMemory())
		claim := Claim(InClass("by-hand"))
		object, class := LocalBackend("disks"), classOfDisks()
		object.Spec.StorageClass = nil
		w.create(object, class, claim)
		w.settle()
		w.delete(class)

		w.requestSize(claim, "2Gi")

		expectExpanded(w, claim, "2Gi")
	})
})

// interrupt requests a size for a claim, fails one of the writes, and restarts.
func (w *world) interrupt(claim *corev1.PersistentVolumeClaim, size string, number int, kind fault) {
	GinkgoHelper()
	update(w, claim, Asking(size))
	w.failWrite(number, kind)
	w.restart()
	w.settle()
}

// mumbling grows a volume, and loses its first answer.
type mumbling struct {
	*fake.Backend
	answered bool
}

func (m *mumbling) Expand(ctx context.Context, request backend.ExpandRequest) (backend.Expansion, error) {
	expanded, err := m.Backend.Expand(ctx, request)
	if !m.answered {
		m.answered = true
		return backend.Expansion{}, errors.New("connection lost")
	}
	return expanded, err
}

// rounding grows every volume to 2Gi.
type rounding struct{ *fake.Backend }

func (r rounding) Expand(ctx context.Context, request backend.ExpandRequest) (backend.Expansion, error) {
	return r.Backend.Expand(ctx, backend.ExpandRequest{ID: request.ID, Capacity: resource.MustParse("2Gi")})
}

// noting remembers the volume object of a request.
type noting struct {
	*fake.Backend
	volume *corev1.PersistentVolume
}

func (n *noting) Expand(ctx context.Context, request backend.ExpandRequest) (backend.Expansion, error) {
	n.volume = request.Volume
	return n.Backend.Expand(ctx, request)
}

// idle does nothing, and says so.
type idle struct{ *fake.Backend }

func (idle) Expand(context.Context, backend.ExpandRequest) (backend.Expansion, error) {
	return backend.Expansion{Capacity: resource.MustParse("1Gi")}, nil
}

func classOfDisks() *storagev1.StorageClass {
	class := Class("by-hand", "local.stowage.dev", map[string]string{"backend": "disks"})
	class.AllowVolumeExpansion = new(true)
	return class
}
