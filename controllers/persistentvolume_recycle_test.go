package controllers

import (
	"context"
	"errors"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A volume of policy Recycle", func() {
	It("is emptied when its claim is gone, and goes to the next one", func() {
		w, shelf, pv := recycling()
		w.delete(Claim())
		w.settle()

		expectPhase(w, pv, corev1.VolumeAvailable)
		Expect(pv.Spec.ClaimRef).To(BeNil())
		Expect(pv.Annotations).NotTo(HaveKey(stowagev1alpha1.RecyclingAnnotation))
		Expect(shelf.files).To(BeEmpty())
		Expect(eventsWith(w.newEvents(), "VolumeRecycled")).To(HaveLen(1))

		next := Claim(ClaimNamed("next"), InClass(""))
		w.create(next)
		w.settle()
		expectBound(w, next, pv)
	})

	It("stays reserved for the claim that a person named", func() {
		w, shelf, pv := recycling(ReservedTo("data"))
		w.delete(Claim())
		w.settle()

		expectPhase(w, pv, corev1.VolumeAvailable)
		Expect(pv.Spec.ClaimRef).To(And(HaveField("Name", "data"), HaveField("UID", BeEmpty())))
		Expect(shelf.files).To(BeEmpty())
	})

	DescribeTable("keeps its data",
		func(keep func(*world, *corev1.PersistentVolume)) {
			w, shelf, pv := recycling()
			keep(w, pv)
			w.delete(Claim())

			w.settle()

			Expect(shelf.files).To(HaveKey(scratch))
			w.get(pv)
			Expect(pv.Spec.ClaimRef).NotTo(BeNil())
		},
		Entry("when its policy was changed", func(w *world, pv *corev1.PersistentVolume) {
			update(w, pv, retain)
		}),
		Entry("when it is being deleted", func(w *world, pv *corev1.PersistentVolume) {
			update(w, pv, func(pv *corev1.PersistentVolume) { pv.Finalizers = append(pv.Finalizers, "example.com/hold") })
			w.delete(pv)
		}),
		Entry("when another volume stands for the same directory", func(w *world, _ *corev1.PersistentVolume) {
			w.create(Volume("twin", onServer("NFS.example.com", scratch+"/")))
		}),
		Entry("when another volume is in it", func(w *world, _ *corev1.PersistentVolume) {
			w.create(Volume("inner", onServer("nfs.example.com", scratch+"/inner")))
		}),
		Entry("when it is in another volume", func(w *world, _ *corev1.PersistentVolume) {
			w.create(Volume("outer", onServer("nfs.example.com", "/")))
		}),
		Entry("when a driver's volume is in it", func(w *world, _ *corev1.PersistentVolume) {
			w.create(Volume("made", func(pv *corev1.PersistentVolume) {
				pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
					Driver: "nfs.csi.k8s.io", VolumeHandle: "made",
					VolumeAttributes: map[string]string{"server": "nfs.example.com", "share": scratch + "/made"},
				}}
			}))
		}),
		Entry("when it is in the share of a StorageBackend", func(w *world, _ *corev1.PersistentVolume) {
			w.create(nfsBackendOn("share", "nfs.example.com", "/exports"))
		}),
	)

	It("is emptied beside volumes of other directories and servers", func() {
		w, shelf, _ := recycling()
		w.create(Volume("sibling", onServer("nfs.example.com", scratch+"-2")), Volume("elsewhere", onServer("other.example.com", scratch)))
		w.delete(Claim())
		w.settle()
		Expect(shelf.files).To(BeEmpty())
	})

	It("keeps its data while a pod that named its claim is there, and says so once", func() {
		w, shelf, pv := recycling()
		pod := Pod("user", "node-1", Claim().Name)
		w.create(pod)
		forceDelete(w, Claim())
		w.settle()
		w.settle()
		Expect(shelf.files).To(HaveKey(scratch))
		Expect(eventsWith(w.newEvents(), "VolumeRecycle")).To(ConsistOf(ContainSubstring("a pod may use it")))

		w.delete(pod)
		w.settle()
		expectPhase(w, pv, corev1.VolumeAvailable)
		Expect(shelf.files).To(BeEmpty())
	})

	It("waits for a server that is away, and records one event", func() {
		w, shelf, pv := recycling()
		shelf.failures = slices.Repeat([]error{backend.Unavailable.Errorf("the server is away")}, 5)
		w.delete(Claim())
		for range 5 {
			_ = w.round()
		}
		expectPhase(w, pv, corev1.VolumeReleased)

		shelf.failures = nil
		w.settle()

		expectPhase(w, pv, corev1.VolumeAvailable)
		Expect(eventsWith(w.newEvents(), "VolumeFailedRecycle")).To(HaveLen(1))
	})

	DescribeTable("is left to a person, with an event that says what to do,",
		func(option func(*corev1.PersistentVolume), failure error) {
			w, shelf, pv := recycling(option)
			shelf.failures = []error{failure}
			w.delete(Claim())
			w.settle()
			expectPhase(w, pv, corev1.VolumeFailed)
			Expect(pv.Status.Message).To(ContainSubstring("remove its data by hand, then take spec.claimRef off"))
			Expect(eventsWith(w.newEvents(), "VolumeFailedRecycle")).To(HaveLen(1))

			update(w, pv, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil })
			w.settle()
			expectPhase(w, pv, corev1.VolumeAvailable)
		},
		Entry("when it lies on a node", func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: scratch}}
		}, nil),
		Entry("when it is read-only", func(pv *corev1.PersistentVolume) { pv.Spec.NFS.ReadOnly = true }, nil),
		Entry("when its directory can't be named", func(*corev1.PersistentVolume) {}, backend.Invalid.Errorf("the path is no path")),
	)
})

var _ = Describe("Recycling that is interrupted", func() {
	const writes = 4
	for _, kind := range []fault{lost, unanswered, contended} {
		for number := range writes {
			It("goes on when write "+string(rune('1'+number))+" is "+string(kind), func() {
				w, shelf, pv := recycling()
				w.delete(Claim())
				w.faults = map[int]fault{w.written + number: kind}
				_ = w.round()
				_ = w.round()
				w.restart()
				shelf.serve(w, "restarted")

				w.settle()

				expectPhase(w, pv, corev1.VolumeAvailable)
				Expect(shelf.files).To(BeEmpty())
				Expect(pv.Annotations).NotTo(HaveKey(stowagev1alpha1.RecyclingAnnotation))
			})
		}
	}

	DescribeTable("goes on after a crash",
		func(failure error) {
			w, shelf, pv := recycling()
			shelf.failures = []error{failure}
			w.delete(Claim())
			_ = w.round()
			_ = w.round()
			w.restart()
			shelf.serve(w, "restarted")
			w.settle()
			expectPhase(w, pv, corev1.VolumeAvailable)
			Expect(shelf.files).To(BeEmpty())
		},
		Entry("before the call", errInjected),
		Entry("after the call", errAnswerLost),
		Entry("while the server is at it", backend.InProgress.Errorf("removing goes on")),
	)

	It("reports the progress of a removal that takes many calls", func() {
		w, shelf, pv := recycling()
		shelf.failures = []error{backend.InProgress.Errorf("5 files so far"), backend.InProgress.Errorf("5 files so far"), backend.InProgress.Errorf("10 files so far")}
		w.delete(Claim())
		for range 5 {
			_ = w.round()
		}
		w.settle()
		Expect(eventsWith(w.newEvents(), "VolumeRecycle ")).To(Equal([]string{"Normal VolumeRecycle 5 files so far", "Normal VolumeRecycle 10 files so far"}))
		expectPhase(w, pv, corev1.VolumeAvailable)
	})

	DescribeTable("keeps the data when, after the decision,",
		func(change func(*world, *corev1.PersistentVolume)) {
			w, shelf, pv := recycling()
			w.delete(Claim())
			shelf.beforeConfirm = func() { change(w, pv) }
			w.settle()
			Expect(shelf.calls).NotTo(BeZero())
			Expect(shelf.files).To(HaveKey(scratch))
		},
		Entry("its policy is changed", func(w *world, pv *corev1.PersistentVolume) { update(w, pv, retain) }),
		Entry("it is deleted, and made again under the same name", func(w *world, pv *corev1.PersistentVolume) {
			update(w, pv, func(pv *corev1.PersistentVolume) { pv.Finalizers = nil })
			w.delete(pv)
			w.create(Volume(pv.Name, onServer("nfs.example.com", scratch), Reclaimed(corev1.PersistentVolumeReclaimRecycle)))
		}),
		Entry("another volume comes to stand for its directory", func(w *world, _ *corev1.PersistentVolume) {
			w.create(Volume("twin", onServer("nfs.example.com", scratch)))
		}),
	)

	It("by another leader leaves what the next claim wrote", func() {
		w, shelf, pv := recycling()
		forceDelete(w, Claim())
		first := w.volumes
		shelf.afterConfirm = func() {
			w.restart()
			shelf.serve(w, "second")
			w.settle()
			expectPhase(w, pv, corev1.VolumeAvailable)
			w.create(Claim(ClaimNamed("next"), InClass("")))
			w.settle()
			shelf.files[scratch] = "of the next claim"
		}

		for range 3 {
			_, _ = first.Reconcile(GinkgoT().Context(), wake.Request(pv))
		}

		Expect(shelf.files).To(HaveKeyWithValue(scratch, "of the next claim"))
		expectBound(w, Claim(ClaimNamed("next")), pv)
	})

	It("by another leader is not called done by the first", func() {
		w, shelf, pv := recycling()
		forceDelete(w, Claim())
		first := w.volumes
		w.restart()
		shelf.serve(w, "second")
		second := w.volumes
		shelf.afterRemoval = func() {
			shelf.failures = []error{errInjected}
			_, _ = second.Reconcile(GinkgoT().Context(), wake.Request(pv))
		}

		_, _ = first.Reconcile(GinkgoT().Context(), wake.Request(pv))

		w.get(pv)
		Expect(pv.Annotations).To(HaveKeyWithValue(stowagev1alpha1.RecyclingAnnotation, "second"))
		Expect(pv.Spec.ClaimRef).NotTo(BeNil())
	})
})

const scratch = "/exports/scratch"

// errAnswerLost is of a call that was carried out.
var errAnswerLost = errors.New("the answer was lost")

// shelf is a recycler in memory: directories of a server, with what they hold. As on a
// server, nothing goes into a directory that is gone.
type shelf struct {
	files map[string]string
	// aside are the tokens for which a directory was made ready, by path.
	aside    map[string][]string
	failures []error
	calls    int
	// These run once, within the next call.
	beforeConfirm, afterConfirm, afterRemoval func()
}

func (s *shelf) Recycle(ctx context.Context, wanted backend.Recycling) error {
	s.calls++
	failure := s.nextFailure()
	if failure != nil && !errors.Is(failure, errAnswerLost) {
		return failure
	}
	s.aside[wanted.Path] = append(s.aside[wanted.Path], wanted.Token)
	once(&s.beforeConfirm)
	if err := wanted.Confirm(ctx); err != nil {
		return err
	}
	once(&s.afterConfirm)
	if !slices.Contains(s.aside[wanted.Path], wanted.Token) {
		return backend.Unavailable.Errorf("the directory is gone that the data was to be moved to")
	}
	delete(s.files, wanted.Path)
	delete(s.aside, wanted.Path)
	once(&s.afterRemoval)
	return failure
}

func (s *shelf) nextFailure() error {
	if len(s.failures) == 0 {
		return nil
	}
	next := s.failures[0]
	s.failures = s.failures[1:]
	return next
}

func once(hook *func()) {
	if do := *hook; do != nil {
		*hook = nil
		do()
	}
}

// serve has a world's reconcilers use the shelf, by a token.
func (s *shelf) serve(w *world, token string) {
	w.served.Recycler, w.served.Token = s, token
}

// recycling is a cluster with a claim, and a volume of policy Recycle bound to it.
func recycling(options ...func(*corev1.PersistentVolume)) (*world, *shelf, *corev1.PersistentVolume) {
	GinkgoHelper()
	w, s := newWorld(reconciler.ClusterScope), &shelf{files: map[string]string{scratch: "data"}, aside: map[string][]string{}}
	s.serve(w, "first")
	claim, pv := Claim(InClass("")), Volume("scratch", onServer("nfs.example.com", scratch), Reclaimed(corev1.PersistentVolumeReclaimRecycle))
	for _, option := range options {
		option(pv)
	}
	w.create(claim, pv)
	w.settle()
	expectBound(w, claim, pv)
	w.newEvents()
	return w, s, pv
}

// forceDelete deletes a claim past its finalizers.
func forceDelete(w *world, claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	w.delete(claim)
	update(w, claim, func(claim *corev1.PersistentVolumeClaim) { claim.Finalizers = nil })
	Expect(w.gone(claim)).To(BeTrue())
}

// onServer makes a volume one of a directory on an NFS server.
func onServer(server, path string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: server, Path: path}}
	}
}

// nfsBackendOn is a StorageBackend on a share.
func nfsBackendOn(name, server, path string) *stowagev1alpha1.StorageBackend {
	object := LocalBackend(name)
	object.Spec.Local = nil
	object.Spec.NFS = &stowagev1alpha1.NFSBackend{Server: server, Path: stowagev1alpha1.AbsolutePath(path)}
	return object
}
