package controllers

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A claim of a CSI driver that names a VolumeAttributesClass", func() {
	It("gets a volume with its attributes, and says so", func() {
		w, claim, pv := madeWithAttributes(reconciler.ClusterScope)

		request := w.driver.Request(pv.Name)
		Expect(request.Attributes).To(HaveValue(HaveField("Parameters", Equal(map[string]string{"iops": "gold"}))))
		Expect(request.Parameters).NotTo(HaveKey("iops"))
		Expect(pv.Spec.VolumeAttributesClassName).To(HaveValue(Equal("gold")))
		expectAttributes(w, claim, pv, "gold")
	})

	It("waits for a class that is missing, and is provisioned once it is there", func() {
		w := newCSIWorld(reconciler.ClusterScope)
		claim := Claim(InClass("kept"), ofAttributes("gold"))
		w.create(claim)
		w.settle()
		Expect(w.condition(claim).Message).To(ContainSubstring("VolumeAttributesClass gold does not exist: create it"))
		Expect(w.storage.Calls()).To(BeEmpty())

		w.create(attributesOfDriver("gold", csiDriver))
		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
	})

	It("is refused where the class is another driver's", func() {
		w := newCSIWorld(reconciler.ClusterScope)
		claim := Claim(InClass("kept"), ofAttributes("gold"))
		w.create(attributesOfDriver("gold", "other.example.com"), claim)
		w.settle()

		Expect(w.condition(claim).Message).To(ContainSubstring(`is for driver "other.example.com"`))
		Expect(w.storage.Calls()).To(BeEmpty())
	})

	It("is undone with the same attributes, though its class is being deleted", func() {
		w := newCSIWorld(reconciler.ClusterScope)
		claim := Claim(InClass("tiered"), ofAttributes("gold"))
		w.create(attributesOfDriver("gold", csiDriver), claim)
		w.faults = map[int]fault{w.written + 2: lost} // of the volume object
		_ = w.round()
		w.restart()
		Expect(w.all(&corev1.PersistentVolumeList{})).To(BeEmpty())
		w.settleBy(func() error {
			_, err := w.classes.Reconcile(w.logging(), wake.Request(attributesOfDriver("gold", csiDriver)))
			return err
		})
		w.delete(attributesOfDriver("gold", csiDriver))
		w.delete(claim)
		w.settle()

		Expect(w.gone(claim)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
		Expect(w.gone(attributesOfDriver("gold", csiDriver))).To(BeTrue())
		for _, undone := range w.driver.Undone() {
			Expect(undone.Attributes).To(HaveValue(HaveField("Parameters", Equal(map[string]string{"iops": "gold"}))))
		}
	})
})

var _ = Describe("A bound claim of a CSI driver whose VolumeAttributesClass changes", func() {
	for _, scope := range []reconciler.Scope{reconciler.ClusterScope, reconciler.ClassesScope} {
		It("has its volume changed in scope="+string(scope), func() {
			w, claim, pv := madeWithAttributes(scope)

			w.requestAttributes(claim, "silver")

			expectAttributes(w, claim, pv, "silver")
			Expect(w.driver.Modified()).To(HaveLen(1))
			Expect(w.driver.Modified()[0].Parameters).To(Equal(map[string]string{"iops": "silver"}))
			Expect(w.newEvents()).To(And(ContainElement(ContainSubstring("Normal VolumeModify ")), ContainElement(ContainSubstring("Normal VolumeModifySuccessful"))))
		})
	}

	It("gets one though it had none", func() {
		w, claim, pv := madeByDriver()
		w.create(attributesOfDriver("silver", csiDriver))
		w.requestAttributes(claim, "silver")

		expectAttributes(w, claim, pv, "silver")
	})

	It("says what to do where the class doesn't exist, and is changed once it does", func() {
		w, claim, pv := madeByDriver()
		w.requestAttributes(claim, "silver")
		Expect(claim.Status.ModifyVolumeStatus).To(HaveValue(Equal(modifying("silver", corev1.PersistentVolumeClaimModifyVolumePending))))
		Expect(modifyError(claim)).To(ContainSubstring("create it, or name another in the claim"))
		Expect(w.driver.Modified()).To(BeEmpty())

		w.create(attributesOfDriver("silver", csiDriver))
		w.settle()

		expectAttributes(w, claim, pv, "silver")
	})

	It("waits where the class is being deleted", func() {
		w, claim, _ := madeByDriver()
		class := attributesOfDriver("silver", csiDriver)
		class.Finalizers = []string{"example.com/kept"}
		w.create(class)
		w.delete(class)
		w.requestAttributes(claim, "silver")

		Expect(modifyError(claim)).To(ContainSubstring("is being deleted: name another in the claim"))
		Expect(w.driver.Modified()).To(BeEmpty())
		update(w, class, func(class *storagev1.VolumeAttributesClass) { class.Finalizers = nil })
	})

	It("is infeasible where the driver refuses it, isn't tried again, and goes on with a change back", func() {
		w, claim, pv := madeWithAttributes(reconciler.ClusterScope)
		w.storage.FailNext(backend.Invalid.Errorf("no such iops"))
		w.requestAttributes(claim, "silver")
		Expect(claim.Status.ModifyVolumeStatus).To(HaveValue(Equal(modifying("silver", corev1.PersistentVolumeClaimModifyVolumeInfeasible))))
		Expect(modifyError(claim)).To(ContainSubstring("no such iops: name another class"))
		Expect(claim.Status.CurrentVolumeAttributesClassName).To(HaveValue(Equal("gold")))
		calls := len(w.storage.Calls())
		w.restart()
		w.settle()
		Expect(w.storage.Calls()).To(HaveLen(calls))

		w.requestAttributes(claim, "gold")

		expectAttributes(w, claim, pv, "gold")
		Expect(w.driver.Modified()[len(w.driver.Modified())-1].Class).To(Equal("gold"))
	})

	It("is tried again a while after the driver refused it, once for that time, and says so no more", func() {
		w, claim, pv := madeWithAttributes(reconciler.ClusterScope)
		w.storage.FailNext(repeated(backend.Invalid.Errorf("no such iops"), 2)...)
		w.requestAttributes(claim, "silver")
		calls := len(w.storage.Calls())
		w.newEvents()

		w.passTime(6 * time.Minute)
		_ = w.round()
		Expect(w.storage.Calls()).To(HaveLen(calls + 1))
		w.get(claim)
		Expect(claim.Status.ModifyVolumeStatus).To(HaveValue(Equal(modifying("silver", corev1.PersistentVolumeClaimModifyVolumeInfeasible))))
		Expect(w.newEvents()).NotTo(ContainElement(ContainSubstring("Normal VolumeModify ")))

		w.passTime(6 * time.Minute)
		w.settle()
		expectAttributes(w, claim, pv, "silver")
	})

	It("is changed back while the class that it asked for last is missing", func() {
		w, claim, pv := madeWithAttributes(reconciler.ClusterScope)
		w.requestAttributes(claim, "absent")
		Expect(claim.Status.ModifyVolumeStatus).To(HaveValue(Equal(modifying("absent", corev1.PersistentVolumeClaimModifyVolumePending))))

		w.requestAttributes(claim, "gold")

		expectAttributes(w, claim, pv, "gold")
		Expect(modifyError(claim)).To(BeEmpty())
	})

	It("is infeasible where the class is another driver's, and no driver is called", func() {
		w, claim, _ := madeByDriver()
		w.create(attributesOfDriver("foreign", "other.example.com"))
		w.requestAttributes(claim, "foreign")

		Expect(claim.Status.ModifyVolumeStatus.Status).To(Equal(corev1.PersistentVolumeClaimModifyVolumeInfeasible))
		Expect(w.storage.Calls()).NotTo(ContainElement(HavePrefix("Modify")))
	})

	It("ends its change where it names no class any more, once no call goes on", func() {
		w, claim, _ := madeByDriver()
		w.create(attributesOfDriver("silver", csiDriver))
		w.storage.FailNext(backend.Invalid.Errorf("no such iops"))
		w.requestAttributes(claim, "silver")
		w.newEvents()

		update(w, claim, func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeAttributesClassName = nil })
		w.settle()

		Expect(w.read(claim).Status.ModifyVolumeStatus).To(BeNil())
		Expect(modifyError(claim)).To(BeEmpty())
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("Normal VolumeModifyCanceled")))
	})

	It("is refused where its volume is of a kind without attributes", func() {
		w, claim := newWorld(reconciler.ClusterScope), Claim(InClass("local"))
		w.create(LocalBackend("local"), Class("local", "local.stowage.dev", map[string]string{"backend": "local"}), attributesOfDriver("silver", "local.stowage.dev"))
		w.settle()
		w.create(claim)
		w.settle()
		w.requestAttributes(claim, "silver")

		Expect(claim.Status.ModifyVolumeStatus.Status).To(Equal(corev1.PersistentVolumeClaimModifyVolumeInfeasible))
		Expect(modifyError(claim)).To(ContainSubstring("has no attributes to change"))
	})

	It("is left to external-resizer where the driver has no StorageBackend", func() {
		w := newWorld(reconciler.ClusterScope)
		claim, pv := Claim(), Volume("v", ofDriver(csiDriver))
		w.create(claim, pv, attributesOfDriver("silver", csiDriver))
		w.settle()
		w.requestAttributes(claim, "silver")

		Expect(claim.Status.ModifyVolumeStatus).To(BeNil())
	})

	It("grows at the same time", func() {
		w, claim, pv := madeWithAttributes(reconciler.ClusterScope)
		w.storage.FailNext(backend.Exhausted.Errorf("full"))
		update(w, claim, func(claim *corev1.PersistentVolumeClaim) {
			claim.Spec.VolumeAttributesClassName = ptr.To("silver")
			claim.Spec.Resources.Requests[corev1.ResourceStorage] = size("2Gi")
		})
		_ = w.round()

		expectAttributes(w, claim, pv, "silver")
	})
})

var _ = Describe("A change of attributes with an unknown outcome", func() {
	unknown := []error{backend.InProgress.Errorf("aborted"), backend.Unavailable.Errorf("away"), errUnanswered}
	for _, problem := range unknown {
		It("is repeated with the same target, though the claim names another since, also after a restart: "+problem.Error(), func() {
			w, claim, pv := madeWithAttributes(reconciler.ClusterScope)
			w.create(attributesOfDriver("bronze", csiDriver))
			w.driver.HalfNext(problem)
			w.passOnce(claim, "silver")
			Expect(claim.Status.ModifyVolumeStatus).To(HaveValue(Equal(modifying("silver", corev1.PersistentVolumeClaimModifyVolumeInProgress))))

			w.restart()
			w.requestAttributes(claim, "bronze")

			expectAttributes(w, claim, pv, "bronze")
			Expect(classesOf(w.driver.Modified())).To(Equal([]string{"silver", "silver", "bronze"}))
		})
	}

	It("keeps its class until it is known, though that is deleted", func() {
		w, claim, pv := madeWithAttributes(reconciler.ClusterScope)
		w.driver.HalfNext(errUnanswered, errUnanswered)
		w.passOnce(claim, "silver")
		w.delete(attributesOfDriver("silver", csiDriver))
		update(w, claim, func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeAttributesClassName = ptr.To("gold") })
		_ = w.round()
		w.get(attributesOfDriver("silver", csiDriver))
		w.settle()

		expectAttributes(w, claim, pv, "gold")
		Expect(classesOf(w.driver.Modified())).To(Equal([]string{"silver", "silver", "silver", "gold"}))
		Expect(w.gone(attributesOfDriver("silver", csiDriver))).To(BeTrue())
	})

	It("waits for its class, and for no other, where a person removed it", func() {
		w, claim, pv := madeWithAttributes(reconciler.ClusterScope)
		w.driver.HalfNext(errUnanswered)
		w.passOnce(claim, "silver")
		w.delete(attributesOfDriver("silver", csiDriver))
		update(w, attributesOfDriver("silver", csiDriver), func(class *storagev1.VolumeAttributesClass) { class.Finalizers = nil })
		w.requestAttributes(claim, "gold")
		Expect(modifyError(claim)).To(ContainSubstring("create it again with the same parameters"))
		Expect(w.driver.Modified()).To(HaveLen(1))

		w.create(attributesOfDriver("silver", csiDriver))
		w.settle()

		expectAttributes(w, claim, pv, "gold")
	})

	It("goes on with another class at once after a refusal that is final", func() {
		w, claim, pv := madeWithAttributes(reconciler.ClusterScope)
		w.storage.FailNext(backend.NotReady.Errorf("modified a moment ago"))
		w.passOnce(claim, "silver")
		Expect(modifyError(claim)).To(And(ContainSubstring("modified a moment ago"), ContainSubstring("may have some of the attributes already")))

		w.restart()
		w.requestAttributes(claim, "gold")

		expectAttributes(w, claim, pv, "gold")
		Expect(classesOf(w.driver.Modified())).To(Equal([]string{"gold"}))
	})

	It("is unknown again from before each repeat of a refused call on", func() {
		w, claim, pv := madeWithAttributes(reconciler.ClusterScope)
		w.storage.FailNext(backend.NotReady.Errorf("modified a moment ago"))
		w.passOnce(claim, "silver")
		w.driver.HalfNext(errUnanswered)
		w.faults = map[int]fault{w.written + 1: lost} // of the answer, so that the refusal would be the last word
		_ = w.round()

		w.restart()
		w.requestAttributes(claim, "gold")

		expectAttributes(w, claim, pv, "gold")
		Expect(classesOf(w.driver.Modified())).To(Equal([]string{"silver", "silver", "gold"}))
	})

	It("calls no driver for a claim that a stale cache shows", func() {
		w, claim, pv := madeWithAttributes(reconciler.ClusterScope)
		w.driver.HalfNext(errUnanswered)
		w.passOnce(claim, "silver")
		shown := w.read(claim).DeepCopy()
		w.settle()
		expectAttributes(w, claim, pv, "silver")
		calls := len(w.driver.Modified())
		w.restart()
		w.views.claims.Client = stale{w, []client.Object{shown}}
		_ = w.round()

		Expect(w.driver.Modified()).To(HaveLen(calls))
		expectAttributes(w, claim, pv, "silver")
	})
})

var _ = Describe("A change of attributes that is interrupted", func() {
	const writes = 3
	for _, kind := range []fault{lost, unanswered, contended} {
		for number := range writes {
			It("ends with the class that the claim names when write "+string(rune('1'+number))+" is "+string(kind), func() {
				for _, after := range []string{"silver", "gold"} {
					w, claim, pv := madeWithAttributes(reconciler.ClusterScope)
					update(w, claim, func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeAttributesClassName = ptr.To("silver") })
					w.failWrite(number, kind)
					w.restart()
					w.requestAttributes(claim, after)

					expectAttributes(w, claim, pv, after)
					Expect(w.driver.Request(pv.Name).Attributes.Class).To(Equal(after))
					w.empty()
				}
			})
		}
	}
})

// errUnanswered is a call of which nothing is known.
var errUnanswered = backend.ErrorKind("").Errorf("no answer")

// attributesOfDriver is a class whose parameters have its name.
func attributesOfDriver(name, driver string) *storagev1.VolumeAttributesClass {
	class := &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: name}, DriverName: driver, Parameters: map[string]string{"iops": name}}
	return class
}

// madeWithAttributes is a cluster with a bound claim of class gold, and with a class silver.
func madeWithAttributes(scope reconciler.Scope) (*world, *corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	GinkgoHelper()
	w := newCSIWorld(scope)
	claim := Claim(InClass("kept"), ofAttributes("gold"))
	w.create(attributesOfDriver("gold", csiDriver), attributesOfDriver("silver", csiDriver), claim)
	if scope == reconciler.ClassesScope {
		update(w, claim, requestedFrom(csiDriver))
	}
	pv := w.settleBound(claim)
	w.newEvents()
	return w, claim, pv
}

// settleBound returns the volume that was made for a claim, which Kubernetes binds to it in scope=classes.
func (w *world) settleBound(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	GinkgoHelper()
	w.settle()
	pv := Volume(provisioned.VolumeID(claim))
	w.get(pv)
	if w.scope == reconciler.ClassesScope {
		w.bindAsKubernetes(claim, pv)
	}
	w.settle()
	return pv
}

// bindAsKubernetes binds a claim as kube-controller-manager does.
func (w *world) bindAsKubernetes(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
	GinkgoHelper()
	update(w, claim, func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeName = pv.Name })
	claim.Status.Phase, claim.Status.Capacity, claim.Status.AccessModes = corev1.ClaimBound, pv.Spec.Capacity, pv.Spec.AccessModes
	claim.Status.CurrentVolumeAttributesClassName = pv.Spec.VolumeAttributesClassName
	Expect(w.direct.Status().Update(GinkgoT().Context(), claim)).To(Succeed())
}

// requestAttributes has a claim name a class, and everything come to rest.
func (w *world) requestAttributes(claim *corev1.PersistentVolumeClaim, class string) {
	GinkgoHelper()
	update(w, claim, func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeAttributesClassName = &class })
	w.settle()
	w.get(claim)
}

// passOnce has a claim name a class, and runs one round.
func (w *world) passOnce(claim *corev1.PersistentVolumeClaim, class string) {
	GinkgoHelper()
	update(w, claim, func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeAttributesClassName = &class })
	_ = w.round()
	w.get(claim)
}

func expectAttributes(w *world, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume, class string) {
	GinkgoHelper()
	w.get(claim)
	w.get(pv)
	Expect(claim.Status.CurrentVolumeAttributesClassName).To(HaveValue(Equal(class)))
	Expect(claim.Status.ModifyVolumeStatus).To(BeNil())
	Expect(pv.Spec.VolumeAttributesClassName).To(HaveValue(Equal(class)))
	for _, condition := range claim.Status.Conditions {
		Expect(strings.HasPrefix(string(condition.Type), "ModifyVolume") || condition.Type == corev1.PersistentVolumeClaimVolumeModifyingVolume).To(BeFalse(), "%v", condition)
	}
}

func modifying(class string, status corev1.PersistentVolumeClaimModifyVolumeStatus) corev1.ModifyVolumeStatus {
	return corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: class, Status: status}
}

// modifyError is the message of the condition about a change that failed.
func modifyError(claim *corev1.PersistentVolumeClaim) string {
	for _, condition := range claim.Status.Conditions {
		if condition.Type == corev1.PersistentVolumeClaimVolumeModifyVolumeError {
			return condition.Message
		}
	}
	return ""
}

func classesOf(all []backend.Attributes) (names []string) {
	for _, attributes := range all {
		names = append(names, attributes.Class)
	}
	return names
}
