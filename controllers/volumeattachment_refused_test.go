package controllers

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/controllers/volumeattachment"
	"github.com/stowage-dev/stowage/internal/backend"
)

var _ = Describe("A refusal that usually passes", func() {
	refusal := backend.NotReady.Errorf("disk d isn't ready")

	It("is not reported for half a minute, and gets one event if it lasts longer", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		attachment := attachmentTo(node.Name, pv)
		w.create(attachment)
		w.storage.FailNext(repeated(refusal, 30)...)
		_ = w.round()
		w.clock.SetTime(w.clock.Now().Add(29 * time.Second))
		_ = w.round()
		w.get(attachment)
		Expect(attachment.Status.AttachError).To(BeNil())
		Expect(w.newEvents()).To(BeEmpty())

		for range 28 {
			w.clock.SetTime(w.clock.Now().Add(time.Second))
			_ = w.round()
		}

		w.get(attachment)
		Expect(attachment.Status.AttachError.Message).To(Equal("disk d isn't ready"))
		Expect(w.newEvents()).To(HaveExactElements(
			ContainSubstring("FailedAttachVolume attaching to node node-1: disk d isn't ready"),
			ContainSubstring("FailedAttachVolume attaching to node node-1: disk d isn't ready")), "of the attachment, and of the volume")
		w.settle()
		expectAttached(w, attachment, pv, node)
	})

	It("gets an event for a detach, too", func() {
		w, attachment, pv := attached()
		w.delete(attachment)
		w.storage.FailNext(repeated(refusal, 2)...)
		_ = w.round()
		w.clock.SetTime(w.clock.Now().Add(31 * time.Second))
		_ = w.round()

		expectStays(w, attachment, pv, "disk d isn't ready")
		w.settle()
		expectDetached(w, attachment, pv)
	})

	It("counts from the start once the volume was attached in between", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		attachment := attachmentTo(node.Name, pv)
		w.create(attachment)
		w.storage.FailNext(refusal)
		w.settle()
		expectAttached(w, attachment, pv, node)
		w.clock.SetTime(w.clock.Now().Add(time.Hour))
		w.delete(attachment)
		w.storage.FailNext(refusal)

		_ = w.round()

		w.get(attachment)
		Expect(attachment.Status.DetachError).To(BeNil())
	})
})

var _ = Describe("Work that goes on in the cloud", func() {
	It("gets an event after two minutes, and no error, which would have kubelets wait longer", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		attachment := attachmentTo(node.Name, pv)
		w.create(attachment)
		w.storage.FailNext(repeated(backend.InProgress.Errorf("attaching goes on (operation o-1)"), 3)...)
		_ = w.round()
		Expect(w.newEvents()).To(BeEmpty())

		w.clock.SetTime(w.clock.Now().Add(2 * time.Minute))
		_ = w.round()
		_ = w.round()

		w.get(attachment)
		Expect(attachment.Status.AttachError).To(BeNil())
		Expect(w.newEvents()).To(HaveEach(ContainSubstring("SlowAttachVolume node node-1, for longer than 2m0s: attaching goes on (operation o-1)")))
	})
})

var _ = Describe("A refusal that a person has to cure", func() {
	It("gets an event on the claim, too: its users see only its namespace", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		attachment := attachmentTo(node.Name, pv)
		w.create(attachment)
		recorded := &recordingEvents{}
		deps := w.dependencies(w.views.attachments)
		deps.Events = recorded
		w.attachments = volumeattachment.New(deps)
		w.storage.FailNext(backend.Invalid.Errorf("constraint constraints/x violated"))

		_ = w.round()

		Expect(recorded.regarding).To(ContainElement(And(
			HaveField("Kind", "PersistentVolumeClaim"), HaveField("Namespace", pv.Spec.ClaimRef.Namespace),
			HaveField("Name", pv.Spec.ClaimRef.Name), HaveField("UID", pv.Spec.ClaimRef.UID))))
	})
})

func repeated(err error, times int) []error {
	var all []error
	for range times {
		all = append(all, err)
	}
	return all
}

// recordingEvents keeps what events are about.
type recordingEvents struct{ regarding []runtime.Object }

func (r *recordingEvents) Eventf(regarding, _ runtime.Object, _, _, _, _ string, _ ...any) {
	r.regarding = append(r.regarding, regarding)
}
