package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/storageclass"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// bindings are the ways in which claims get their volumes, and how many writes
// each takes from its beginning in a cluster at rest; made are the volumes that the
// backend makes for it.
var bindings = []struct {
	of           string
	writes, made int
	begin        func(*world) *corev1.PersistentVolumeClaim
}{
	{"that takes what comes", 4, 0, func(w *world) *corev1.PersistentVolumeClaim {
		return beginWith(w, Claim(), Volume("v"))
	}},
	{"that its volume is reserved for", 4, 0, func(w *world) *corev1.PersistentVolumeClaim {
		return beginWith(w, Claim(), Volume("v", ReservedTo("data")))
	}},
	{"that names its volume", 4, 0, func(w *world) *corev1.PersistentVolumeClaim {
		return beginWith(w, Claim(AskingFor("v")), Volume("v"))
	}},
	{"that its volume is made for", 5, 1, func(w *world) *corev1.PersistentVolumeClaim {
		w.create(LocalBackend("disks"))
		return beginWith(w, Claim(InClass("disks")), Volume("v"))
	}},
	{"that waits for a pod to be placed", 5, 1, func(w *world) *corev1.PersistentVolumeClaim {
		claim := Claim(InClass("disks"))
		w.create(LocalBackend("disks", waitingForConsumer), Node("node-1"), claim)
		w.settle()
		w.create(Pod("user", "node-1", "data"))
		return claim
	}},
	{"that is to be a copy", 5, 2, func(w *world) *corev1.PersistentVolumeClaim {
		w.boundClaim()
		claim := copyOf("data")
		w.create(claim)
		return claim
	}},
	{"that gets the default class late", 6, 1, func(w *world) *corev1.PersistentVolumeClaim {
		claim := Claim(func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = nil })
		w.create(LocalBackend("disks"), claim)
		w.settle()
		class := Class("by-default", stowagev1alpha1.LocalDriver, map[string]string{"backend": "disks"})
		class.Annotations = map[string]string{storageclass.AnnDefaultClass: "true"}
		w.create(class)
		return claim
	}},
}

func beginWith(w *world, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	w.create(pv)
	w.settle()
	w.create(claim)
	return claim
}

var _ = Describe("The binding of a claim", func() {
	for _, binding := range bindings {
		for _, kind := range []fault{lost, unanswered, contended} {
			It(binding.of+" ends the same whichever of its writes is "+string(kind), func() {
				for number := range binding.writes {
					w := newWorldIn(newMemory())
					claim := binding.begin(w)

					w.failWrite(number, kind)
					w.restart()
					w.settle()

					w.get(claim)
					expectBound(w, claim, Volume(claim.Spec.VolumeName))
					Expect(w.storage.Len()).To(Equal(binding.made))
				}
			})
		}
	}
})
