package controllers

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A claim of a CSI driver with a StorageBackend", func() {
	It("gets a volume as external-provisioner would have made it", func() {
		w, _, pv := madeByDriver()

		source := pv.Spec.CSI
		Expect(source.Driver).To(Equal(csiDriver))
		Expect(source.VolumeHandle).To(Equal("projects/demo/zones/a/disks/" + pv.Name))
		Expect(source.VolumeAttributes).To(HaveLen(2))
		Expect(source.VolumeAttributes).To(HaveKeyWithValue("instance", "the driver's own"))
		Expect(source.VolumeAttributes).To(HaveKeyWithValue("storage.kubernetes.io/csiProvisionerIdentity", HaveSuffix("-"+csiDriver)))
		for name, secret := range map[string]*corev1.SecretReference{
			"publisher": source.ControllerPublishSecretRef, "expander": source.ControllerExpandSecretRef, "stager": source.NodeStageSecretRef,
			"node-publisher": source.NodePublishSecretRef, "node-expander": source.NodeExpandSecretRef,
		} {
			Expect(secret).To(Equal(&corev1.SecretReference{Name: name, Namespace: apiserver.Namespace}))
		}
		Expect(pv.Annotations).To(And(
			HaveKeyWithValue(volume.AnnDynamicallyProvisioned, csiDriver),
			HaveKeyWithValue("volume.kubernetes.io/provisioner-deletion-secret-name", "maker"),
			HaveKeyWithValue("volume.kubernetes.io/provisioner-deletion-secret-namespace", apiserver.Namespace)))
		Expect(pv.Finalizers).To(ContainElement("external-provisioner.volume.kubernetes.io/finalizer"))
		Expect(pv.Finalizers).NotTo(ContainElement(stowagev1alpha1.ReclaimFinalizer))
		Expect(w.newEvents()).To(BeEmpty())
	})

	It("passes on what its class says to the driver", func() {
		w := newCSIWorld(reconciler.ClusterScope)
		class := Class("full", csiDriver, map[string]string{
			"tier": "gold", "pool": "a", "backend": csiDriver, "csi.storage.k8s.io/fstype": "btrfs",
			"csi.storage.k8s.io/provisioner-secret-name": "maker", "csi.storage.k8s.io/provisioner-secret-namespace": apiserver.Namespace,
		})
		class.MountOptions = []string{"noatime"}
		claim := Claim(InClass("full"))
		w.create(class, claim)

		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
		request := w.driver.Request(provisioned.VolumeID(claim))
		Expect(request.Parameters).To(Equal(map[string]string{"tier": "gold", "pool": "a"}))
		Expect(request.MountOptions).To(Equal([]string{"noatime"}))
		Expect(request.FSType).To(Equal("btrfs"))
	})

	It("has a class kept for it without parameters", func() {
		w := newCSIWorld(reconciler.ClusterScope)
		class := Class("kept", "", nil)
		w.get(class)

		Expect(class.Provisioner).To(Equal(csiDriver))
		Expect(class.Parameters).To(BeEmpty())
		object := csiBackend()
		w.get(object)
		Expect(object.Status.Driver).To(Equal(csiDriver))
	})

	DescribeTable("is refused, with a reason, and nothing is made, where its class",
		func(parameters map[string]string, reason string) {
			w := newCSIWorld(reconciler.ClusterScope)
			claim := Claim(InClass("bad"))
			w.create(Class("bad", csiDriver, parameters), claim)

			w.settle()

			Expect(w.condition(claim).Reason).To(Equal("ProvisioningFailed"))
			Expect(w.condition(claim).Message).To(ContainSubstring(reason))
			Expect(w.storage.Calls()).To(BeEmpty())
			Expect(w.read(claim).Finalizers).NotTo(ContainElement(stowagev1alpha1.ProvisioningFinalizer))
		},
		Entry("names another backend", map[string]string{"backend": "disks"}, `the StorageBackend of provisioner disk.example.com is disk.example.com`),
		Entry("names another Secret", map[string]string{"csi.storage.k8s.io/node-stage-secret-name": "root"}, `spec.csi.secrets of StorageBackend disk.example.com says "stager"`),
		Entry("names a Secret elsewhere", map[string]string{"csi.storage.k8s.io/node-stage-secret-namespace": "kube-system"}, `says "`+apiserver.Namespace+`"`),
		Entry("has a parameter that external-provisioner adds", map[string]string{"csi.storage.k8s.io/pvc/name": "x"}, `"csi.storage.k8s.io/pvc/name" is not supported`),
		Entry("names a Secret in the former way", map[string]string{"csiProvisionerSecretName": "root"}, `"csiProvisionerSecretName" is not supported`),
		Entry("replaces a parameter of the backend", map[string]string{"pool": "b"}, `"pool" is set by StorageBackend disk.example.com already`),
		Entry("names no file system", map[string]string{"csi.storage.k8s.io/fstype": "EXT 4"}, `"EXT 4" is no name of a file system`),
		Entry("names two file systems", map[string]string{"csi.storage.k8s.io/fstype": "ext4", "fstype": "xfs"}, "differ"),
		Entry("says too much", map[string]string{"tier": strings.Repeat("x", 32<<10)}, "use a class with at most"),
	)

	It("is left to external-provisioner while there is no StorageBackend, and provisioned once there is", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("tiered"))
		w.create(tiered(), claim)
		w.settle()
		Expect(w.condition(claim).Reason).To(Equal("ExternalProvisioning"))
		Expect(w.storage.Calls()).To(BeEmpty())

		w.create(csiBackend())
		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
	})

	It("is provisioned in scope=classes once kube-controller-manager asks the driver for it", func() {
		w := newCSIWorld(reconciler.ClassesScope)
		claim := Claim(InClass("tiered"))
		w.create(claim)
		w.settle()
		Expect(w.storage.Len()).To(BeZero())

		update(w, claim, requestedFrom(csiDriver))
		w.settle()

		w.get(Volume(provisioned.VolumeID(claim)))
	})
})

var _ = Describe("An unfinished call of a CSI driver", func() {
	It("is finished in a repeat, with its volume", func() {
		w, claim := halfMadeByDriver()
		w.restart()
		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
		Expect(w.storage.Len()).To(Equal(1))
	})

	It("is undone with the same request after its claim is deleted, and the class after it", func() {
		w, claim := halfMadeByDriver()
		Expect(hasProvisioningFinalizer(w, tiered())).To(BeTrue())
		made := w.driver.Request(provisioned.VolumeID(claim))

		w.delete(tiered())
		w.storage.FailNext(backend.Unavailable.Errorf("away"))
		w.delete(claim)
		w.restart()
		_ = w.round()
		Expect(hasProvisioningFinalizer(w, tiered())).To(BeTrue(), "while the claim needs it")
		w.settle()

		Expect(w.gone(claim)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
		Expect(w.gone(tiered())).To(BeTrue())
		undone := w.driver.Undone()
		Expect(undone).NotTo(BeEmpty())
		again := undone[len(undone)-1]
		Expect(again.Unwanted).To(BeTrue())
		Expect(again.ID).To(Equal(made.ID))
		Expect(again.Parameters).To(Equal(made.Parameters))
		Expect(again.MountOptions).To(Equal(made.MountOptions))
		Expect(again.Capacity.Cmp(made.Capacity)).To(BeZero())
	})

	It("keeps its claim, which says what to do, where a person removed the class's finalizer", func() {
		w, claim := halfMadeByDriver()
		w.delete(tiered())
		update(w, tiered(), func(class *storagev1.StorageClass) { class.Finalizers = nil })
		w.create(tiered()) // another class of that name
		w.delete(claim)
		w.newEvents()
		w.settle()

		Expect(w.gone(claim)).To(BeFalse())
		Expect(w.newEvents()).To(ContainElement(And(
			ContainSubstring("Warning ProvisioningCleanupFailed"), ContainSubstring("remove that volume from the storage by hand"))))
		Expect(w.driver.Undone()).To(BeEmpty())
	})

	It("isn't undone with the parameters or topologies that its claim's annotation says", func() {
		w, claim := halfMadeByDriver()
		other := Class("other", csiDriver, map[string]string{"tier": "lead"})
		w.create(other)
		update(w, claim, func(claim *corev1.PersistentVolumeClaim) {
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, stowagev1alpha1.ProvisioningAnnotation,
				`{"backend":"disk.example.com","attempt":1,"class":{"name":"other","uid":"`+string(other.UID)+`"},`+
					`"topologies":[{"matchLabelExpressions":[{"key":"zone","values":["z"]}]}]}`)
		})
		w.delete(claim)
		w.settle()

		Expect(w.gone(claim)).To(BeTrue())
		Expect(w.driver.Undone()[0].Parameters).To(Equal(map[string]string{"tier": "gold"}))
		Expect(w.driver.Undone()[0].Topologies).To(BeEmpty())
		Expect(w.storage.Len()).To(BeZero())
	})

	It("isn't begun with a class that is being deleted", func() {
		w := newCSIWorld(reconciler.ClusterScope)
		class := tiered()
		update(w, class, func(class *storagev1.StorageClass) { class.Finalizers = []string{"example.com/kept"} })
		w.delete(class)
		claim := Claim(InClass("tiered"))
		w.create(claim)
		w.settle()

		Expect(w.condition(claim).Message).To(ContainSubstring("StorageClass tiered is being deleted: use another class"))
		Expect(w.storage.Calls()).To(BeEmpty())
		Expect(w.read(claim).Finalizers).NotTo(ContainElement(stowagev1alpha1.ProvisioningFinalizer))
	})

	It("isn't begun with a class that was deleted, where the cache still shows it", func() {
		w := newCSIWorld(reconciler.ClusterScope)
		class := tiered()
		w.get(class)
		w.views.claims.Client = stale{w, []client.Object{class}}
		w.delete(tiered())
		claim := Claim(InClass("tiered"))
		w.create(claim)
		_ = w.round()

		Expect(w.storage.Calls()).To(BeEmpty())
		Expect(w.read(claim).Finalizers).NotTo(ContainElement(stowagev1alpha1.ProvisioningFinalizer))
	})
})

var _ = Describe("Provisioning by a CSI driver that is interrupted", func() {
	const writes = 7
	for _, kind := range []fault{lost, unanswered, contended} {
		for number := range writes {
			It("ends with one bound volume, or with nothing, when write "+string(rune('1'+number))+" is "+string(kind), func() {
				for _, deleted := range []bool{false, true} {
					w := newWorldIn(newMemory())
					w.driver.SetPlaces(zoneTopology("a"))
					w.create(csiBackend(), tiered())
					w.settle()
					claim := Claim(InClass("tiered"))
					w.create(claim)
					w.failWrite(number, kind)
					w.restart()
					w.driver.SetPlaces(zoneTopology("b"))
					if deleted {
						w.delete(claim)
						w.delete(tiered())
					}
					w.settle()

					if !deleted {
						expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
						Expect(w.storage.Len()).To(Equal(1))
						continue
					}
					Expect(w.gone(claim)).To(BeTrue())
					Expect(w.storage.Len()).To(BeZero())
					Expect(w.gone(tiered())).To(BeTrue())
					Expect(w.all(&corev1.PersistentVolumeList{})).To(BeEmpty())
				}
			})
		}
	}
})
