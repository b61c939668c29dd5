package controllers

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("What is said of a claim", func() {
	for when, mode := range map[string]storagev1.VolumeBindingMode{
		"at once": storagev1.VolumeBindingImmediate, "before there is a pod": storagev1.VolumeBindingWaitForFirstConsumer,
	} {
		It("names the backend that can't make its volume, "+when, func() {
			w := newWorld(reconciler.ClusterScope)
			class := Class("odd", stowagev1alpha1.LocalDriver, map[string]string{"backend": "disks", stowagev1alpha1.FSTypeParameter: "btrfs"})
			class.VolumeBindingMode = &mode
			claim := Claim(InClass("odd"))
			w.create(LocalBackend("disks"), class, claim)
			w.settle()

			Expect(w.condition(claim).Reason).To(Equal("ProvisioningFailed"))
			Expect(w.condition(claim).Message).To(HavePrefix(`StorageBackend disks: the file system "btrfs" is not supported here`))
		})
	}

	It("has what is impossible before there is a pod, where kube-controller-manager binds, once", func() {
		w := newWorld(reconciler.ClassesScope)
		class := Class("odd", stowagev1alpha1.LocalDriver, map[string]string{"backend": "disks", stowagev1alpha1.FSTypeParameter: "btrfs"})
		class.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
		w.create(LocalBackend("disks"), class, Claim(InClass("odd")))

		for range 3 {
			w.settle()
		}

		failed := HavePrefix(`Warning ProvisioningFailed StorageBackend disks: the file system "btrfs" is not supported here`)
		Expect(slices.DeleteFunc(w.newEvents(), func(event string) bool { return !strings.Contains(event, "ProvisioningFailed") })).To(ConsistOf(failed))
	})

	It("names the mount option of its class that no node could use", func() {
		w := newWorld(reconciler.ClusterScope)
		share := LocalBackend("share", func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.Local, object.Spec.NFS = nil, &stowagev1alpha1.NFSBackend{Server: "files.example.com", Path: "/exports/volumes"}
		})
		class := Class("odd", stowagev1alpha1.NFSDriver, map[string]string{"backend": "share"})
		class.MountOptions = []string{"hard", "vers=5"}
		claim := Claim(InClass("odd"))
		w.create(share, class, claim)
		w.settle()

		Expect(w.condition(claim).Message).To(Equal(`StorageClass odd has the mount option "vers=5", which is no version of NFS: use vers=3, 4, 4.0, 4.1 or 4.2, in a new class`))
	})

	It("has nothing of a claim that waits for its pod, where kube-controller-manager binds", func() {
		w := newWorld(reconciler.ClassesScope)
		class := Class("disks", stowagev1alpha1.LocalDriver, map[string]string{"backend": "disks"})
		class.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
		w.create(LocalBackend("disks"), class, Claim(InClass("disks")))

		w.settle()

		Expect(w.newEvents()).NotTo(ContainElement(ContainSubstring("ProvisioningFailed")))
	})

	It("names the pod that keeps it once it is deleted, once", func() {
		w, claim, _ := madeVolumeOf()
		w.create(Pod("web", "node-a", claim.Name))
		w.delete(claim)
		w.newEvents()

		for range 3 {
			w.settle()
		}

		Expect(w.newEvents()).To(ConsistOf(And(HavePrefix("Normal ClaimInUse"), HaveSuffix("delete pod web on node node-a"))))
	})
})
