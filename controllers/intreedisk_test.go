package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/volume"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("An in-tree disk", func() {
	It("is attached by Stowage's driver if the node's agent follows pods, and detached with its last pod", func() {
		w := newInTreeWorld()
		pod := w.runs("user")

		attachment := ours("node-1", w.pv)
		w.get(attachment)
		Expect(attachment.Status.Attached).To(BeTrue())
		Expect(attachment.Annotations).To(HaveKeyWithValue(stowagev1alpha1.AttachmentAnnotation,
			`{"backend":"cloud","volume":"`+legacyPath+`","instance":"gce://project/zone/node-1"}`))
		Expect(w.attachmentsOf("node-1")).To(HaveLen(1))
		w.expectOn("gce://project/zone/node-1")

		w.delete(pod)
		w.settle()
		w.expectOn("gce://project/zone/node-1")
		w.uses(w.node)
		w.settle()
		w.expectOn()
		Expect(w.attachmentsOf("node-1")).To(BeEmpty())
		Expect(w.volumesAttached(w.node)).To(BeEmpty())
		w.expectUntouched()
	})

	It("is attached by Google's driver everywhere else, to the byte as without the setting", func() {
		seen := map[bool][]string{}
		for _, allowed := range []bool{false, true} {
			w := &inTreeWorld{nodeWorld: newNodeWorld()}
			w.create(cloud())
			if allowed {
				update(w.world, cloud(), allowingInTreeDisks)
			}
			w.kubelet("kubelet")
			w.create(managedNode("no-drivers"))
			w.create(managedNode("unmarked"), driversOf("unmarked", false, stowagev1alpha1.GCEDriver))
			w.create(managedNode("google"), driversOf("google", true, stowagev1alpha1.GCEDriver, attachintent.GoogleDriver))
			w.create(managedNode("not-ours"), driversOf("not-ours", true, "other.example.com"))
			left := managedNode("left")
			left.Status.NodeInfo.KubeletVersion = "v1.37.1"
			w.create(left, driversOf("left", true, stowagev1alpha1.GCEDriver))
			for _, node := range w.nodeNames() {
				pv := w.inTreeVolume("disk-of-"+node, func(pv *corev1.PersistentVolume) { pv.Spec.GCEPersistentDisk.PDName = "disk-of-" + node })
				w.create(Pod("user-of-"+node, node, pv.Name))
			}
			w.settle()
			seen[allowed] = w.asWritten()
			Expect(seen[allowed]).To(HaveLen(12))
			Expect(w.storage.Calls()).NotTo(ContainElement(ContainSubstring("existing")))
			w.emptyDrivers()
			w.empty()
		}
		Expect(seen[true]).To(Equal(seen[false]))
		Expect(seen[true]).NotTo(ContainElement(ContainSubstring(stowagev1alpha1.GCEDriver)))
	})

	It("is Google's driver's on every node while no backend allows it", func() {
		w := &inTreeWorld{nodeWorld: newNodeWorld()}
		DeferCleanup(w.emptyDrivers)
		w.create(cloud())
		w.followed("node-1")
		pv := w.inTreeVolume("data")
		w.create(Pod("user", "node-1", "data"))
		w.settle()
		Expect(w.attachmentsOf("node-1")).To(HaveExactElements(HaveField("Name", googles("node-1", pv).Name)))
	})

	DescribeTable("is refused if no single backend is for it, with advice", func(says string, change func(*inTreeWorld)) {
		w := newInTreeWorld()
		change(w)
		w.create(Pod("user", "node-1", "data"))
		w.settle()
		Expect(attachErrorOf(w, ours("node-1", w.pv))).To(ContainSubstring(says))
		Expect(w.newEvents()).To(ContainElement(ContainSubstring(says)))
		w.expectOn()
	},
		Entry("none for its zone", "no StorageBackend is for disk "+legacyPath+": set gce.existingDisks", func(w *inTreeWorld) {
			update(w.world, cloud(), func(object *stowagev1alpha1.StorageBackend) { object.Spec.GCE.Zones = []string{"elsewhere"} })
		}),
		Entry("two", "several StorageBackends are for disk "+legacyPath+" (cloud, cloud-2)", func(w *inTreeWorld) { w.create(otherCloud("cloud-2")) }),
		Entry("one that is on its way out", "no StorageBackend is for disk", func(w *inTreeWorld) {
			w.create(func() *stowagev1alpha1.StorageBackend {
				object := otherCloud("allows")
				object.Spec.GCE.Project = "other"
				return object
			}())
			update(w.world, cloud(), func(object *stowagev1alpha1.StorageBackend) { object.Finalizers = []string{"example.com/keep"} })
			w.delete(cloud())
		}),
	)

	It("keeps to the backend that was written down, until it is detached", func() {
		w := newInTreeWorld()
		pod := w.runs("user")
		update(w.world, cloud(), func(object *stowagev1alpha1.StorageBackend) { object.Spec.GCE.ExistingDisks = false })
		w.create(otherCloud("cloud-2"))
		w.settle()
		w.expectOn("gce://project/zone/node-1")

		w.delete(pod)
		w.uses(w.node)
		w.settle()
		w.expectOn()
		Expect(w.attachmentsOf("node-1")).To(BeEmpty())
	})

	It("stays with a pod that has it when no backend allows it any more", func() {
		w := newInTreeWorld()
		pod := w.runs("user")
		update(w.world, cloud(), func(object *stowagev1alpha1.StorageBackend) { object.Spec.GCE.ExistingDisks = false })
		w.settle()
		w.expectOn("gce://project/zone/node-1")
		Expect(w.attachmentsOf("node-1")).To(HaveExactElements(HaveField("Name", ours("node-1", w.pv).Name)), "Google's driver gets no attachment while it is there")
		w.delete(pod)
		w.uses(w.node)
		w.settle()
		w.expectOn()
	})

	Describe("by the name that Google's driver has for it", func() {
		DescribeTable("isn't attached by Stowage's while that one has it, or may get it", func(other func(*inTreeWorld) *storagev1.VolumeAttachment) {
			w := newInTreeWorld()
			w.kubelet("kubelet")
			theirs := other(w)
			w.create(theirs)
			own := ours("node-1", w.pv)
			w.create(own) // its creator did not see the other
			_ = w.world.round()
			Expect(attachErrorOf(w, own)).To(ContainSubstring("by CSI driver pd.csi.storage.gke.io"))
			w.expectOn()

			w.delete(theirs)
			_ = w.world.round()
			w.expectOn("gce://project/zone/node-1")
		},
			Entry("for the same volume object", func(w *inTreeWorld) *storagev1.VolumeAttachment { return googles("kubelet", w.pv) }),
			Entry("on the same node", func(w *inTreeWorld) *storagev1.VolumeAttachment { return googles("node-1", w.pv) }),
			Entry("for another PersistentVolume, which names the zone", func(*inTreeWorld) *storagev1.VolumeAttachment {
				return attachmentBy(attachintent.GoogleDriver, "projects/UNSPECIFIED/zones/zone/disks/legacy", "kubelet", Volume("other"))
			}),
			Entry("for another volume object, of Google's driver itself", func(*inTreeWorld) *storagev1.VolumeAttachment {
				return attachmentBy(attachintent.GoogleDriver, legacyPath, "kubelet", Volume("other"))
			}),
			Entry("for a pod that names the disk itself", func(*inTreeWorld) *storagev1.VolumeAttachment {
				object := attachmentBy(attachintent.GoogleDriver, googleHandle, "kubelet", Volume("other"))
				object.Name = "by-hand"
				object.Spec.Source = storagev1.VolumeAttachmentSource{InlineVolumeSpec: &corev1.PersistentVolumeSpec{
					AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: attachintent.GoogleDriver, VolumeHandle: googleHandle}},
				}}
				return object
			}),
		)

		It("is shared between the two drivers where all only read, and never on one node", func() {
			w := newInTreeWorld(func(pv *corev1.PersistentVolume) {
				pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
			})
			w.kubelet("kubelet")
			w.create(googles("kubelet", w.pv), ours("node-1", w.pv))
			_ = w.world.round()
			w.expectOn("gce://project/zone/node-1")

			second := w.followed("node-2")
			w.create(googles(second.Name, w.pv), ours(second.Name, w.pv))
			_ = w.world.round()
			w.expectOn("gce://project/zone/node-1")
		})

		It("gets no attachment to a node with a kubelet while Stowage's driver has it", func() {
			w := newInTreeWorld()
			pod := w.runs("user")
			w.kubelet("kubelet")
			w.create(Pod("other", "kubelet", "data"))
			w.settle()
			Expect(w.attachmentsOf("kubelet")).To(BeEmpty())
			Expect(w.newEvents()).To(ContainElement(ContainSubstring("Multi-Attach")))

			w.delete(pod)
			w.uses(w.node)
			w.settle()
			w.expectOn()
			Expect(w.attachmentsOf("kubelet")).To(HaveExactElements(HaveField("Name", googles("kubelet", w.pv).Name)))
		})

		It("changes hands on a node that another driver serves from now on only once the first let it go", func() {
			w := newInTreeWorld()
			w.runs("user")
			update(w.world, driversOf("node-1", true), func(object *storagev1.CSINode) {
				object.Spec.Drivers = append(object.Spec.Drivers, storagev1.CSINodeDriver{Name: attachintent.GoogleDriver, NodeID: "node-1"})
			})
			w.settle()
			Expect(w.attachmentsOf("node-1")).To(HaveExactElements(HaveField("Name", ours("node-1", w.pv).Name)))
			w.expectOn("gce://project/zone/node-1")

			w.uses(w.node)
			w.settle()
			w.expectOn()
			Expect(w.attachmentsOf("node-1")).To(HaveExactElements(HaveField("Name", googles("node-1", w.pv).Name)))

			update(w.world, driversOf("node-1", true), func(object *storagev1.CSINode) {
				object.Spec.Drivers = slices.DeleteFunc(object.Spec.Drivers, func(driver storagev1.CSINodeDriver) bool { return driver.Name == attachintent.GoogleDriver })
			})
			Expect(w.reconcile("node-1")).To(Succeed())
			w.settle()
			Expect(w.attachmentsOf("node-1")).To(HaveExactElements(HaveField("Name", ours("node-1", w.pv).Name)))
			w.expectOn("gce://project/zone/node-1")
		})
	})

	It("isn't attached to a node of which only the cache says that its agent follows pods", func() {
		w := newInTreeWorld()
		own := ours("node-1", w.pv)
		w.create(own)
		update(w.world, driversOf("node-1", true), func(object *storagev1.CSINode) {
			object.Spec.Drivers = append(object.Spec.Drivers, storagev1.CSINodeDriver{Name: attachintent.GoogleDriver, NodeID: "node-1"})
		})
		_ = w.world.round()
		Expect(attachErrorOf(w, own)).To(ContainSubstring("isn't one whose agent follows pods"))
		w.expectOn()
	})

	It("isn't attached by a backend that is deleted while it is written down", func() {
		w := newInTreeWorld()
		update(w.world, cloud(), func(object *stowagev1alpha1.StorageBackend) { object.Finalizers = []string{"example.com/keep"} })
		own := ours("node-1", w.pv)
		w.create(own)
		w.views.attachments.Client = afterPatch{w, func() { w.delete(cloud()) }}
		_, _ = w.attachments.Reconcile(context.Background(), wake.Request(own))
		w.get(own)
		Expect(own.Annotations).To(HaveKey(stowagev1alpha1.AttachmentAnnotation))
		Expect(attachErrorOf(w, own)).To(ContainSubstring("is being deleted"))
		w.expectOn()
		Expect(w.storage.Calls()).NotTo(ContainElement(ContainSubstring("legacy")))
	})

	It("is attached and detached in spite of a crash before and after each write", func() {
		for number := range 6 {
			for _, kind := range []fault{lost, unanswered} {
				w := newInTreeWorld()
				pod := Pod("user", "node-1", "data")
				w.create(pod)
				w.interruptedAt(number, kind)
				w.expectOn("gce://project/zone/node-1")
				Expect(w.volumesAttached(w.node)).To(HaveLen(1))

				w.delete(pod)
				w.interruptedAt(number, kind)
				w.expectOn()
				Expect(w.attachmentsOf("node-1")).To(BeEmpty())
				w.expectUntouched()
				w.emptyDrivers()
				w.empty()
			}
		}
	})

	It("is detached where its attachment is deleted right after it was written what is attached", func() {
		w := newInTreeWorld()
		own := ours("node-1", w.pv)
		w.create(own)
		w.storage.FailNext(errors.New("the answer was lost"))
		_ = w.world.round()
		w.get(own)
		Expect(own.Annotations).To(HaveKey(stowagev1alpha1.AttachmentAnnotation))
		w.storage.AttachExistingBehind(legacyPath, identityOf(w.node), false) // it took effect all the same
		w.delete(own)
		w.world.settle()
		w.expectOn()
		Expect(w.gone(own)).To(BeTrue())
	})

	Describe("survives", func() {
		It("the deletion of its claim and its PersistentVolume with policy Delete, and is detached first", func() {
			w := newInTreeWorld(func(pv *corev1.PersistentVolume) {
				pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
			})
			pod := w.runs("user")
			w.delete(pod)
			w.delete(Claim(ClaimNamed("data")))
			w.settle()
			w.delete(w.pv)
			w.settle()
			Expect(w.gone(w.pv)).To(BeFalse(), "it says what is attached")
			w.expectOn("gce://project/zone/node-1")

			w.uses(w.node)
			w.settle()
			Expect(w.gone(w.pv)).To(BeTrue())
			w.expectOn()
			w.expectUntouched()
		})

		It("even the finalizer of Stowage's volumes on its volume object", func() {
			w := newInTreeWorld(func(pv *corev1.PersistentVolume) {
				pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
				pv.Finalizers = []string{stowagev1alpha1.ReclaimFinalizer}
				pv.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": stowagev1alpha1.GCEDriver}
			})
			w.delete(Claim(ClaimNamed("data")))
			w.settle()
			w.delete(w.pv)
			w.settle()
			w.expectUntouched()
		})

		It("the deletion of its backend, which waits for its pods", func() {
			w := newInTreeWorld()
			pod := w.runs("user")
			w.delete(cloud())
			w.settle()
			object := cloud()
			w.get(object)
			Expect(object.Status.Conditions).To(ContainElement(HaveField("Message", ContainSubstring("of an existing disk: delete the pods of node node-1"))))
			w.expectOn("gce://project/zone/node-1")

			w.delete(pod)
			w.uses(w.node)
			w.settle()
			w.expectOn()
			Expect(w.gone(cloud())).To(BeTrue())
			w.expectUntouched()
		})

		It("audits that remove orphans, and the detach of dangling attachments", func() {
			w := newInTreeWorld()
			update(w.world, cloud(), func(object *stowagev1alpha1.StorageBackend) {
				object.Spec.Audit.RemoveOrphansAfter = &metav1.Duration{Duration: time.Hour}
			})
			w.storage.AttachExistingBehind(legacyPath, identityOf(w.node), false)
			for range 5 {
				w.clock.SetTime(w.clock.Now().Add(time.Hour))
				w.settle()
			}
			w.expectOn("gce://project/zone/node-1")
			Expect(w.storage.Calls()).NotTo(ContainElement(ContainSubstring("legacy")))
		})

		It("attachments that say something else than their names do", func() {
			for _, gone := range []bool{false, true} {
				w := newInTreeWorld()
				w.storage.AttachExistingBehind(legacyPath, identityOf(w.node), false)
				said, err := json.Marshal(attachintent.Intent{Backend: "cloud", Volume: legacyPath, Instance: w.node.Spec.ProviderID})
				Expect(err).NotTo(HaveOccurred())
				forged := ours("node-1", w.pv)
				forged.Name = volume.AttachmentName(stowagev1alpha1.GCEDriver, "another", "node-1")
				forged.Finalizers = []string{attachintent.Finalizer(stowagev1alpha1.GCEDriver)}
				forged.Annotations = map[string]string{stowagev1alpha1.AttachmentAnnotation: string(said), stowagev1alpha1.StrayAnnotation: "true"}
				if gone {
					missing := "missing"
					forged.Spec.Source.PersistentVolumeName = &missing
				}
				w.create(forged)
				w.delete(forged)
				w.settle()
				w.expectOn("gce://project/zone/node-1")
				w.emptyDrivers()
				w.empty()
			}
		})
	})

	It("that a volume object of Stowage's own driver names by its path is never attached", func() {
		w := newInTreeWorld()
		pv := Volume("sly", func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: stowagev1alpha1.GCEDriver, VolumeHandle: legacyPath, VolumeAttributes: map[string]string{stowagev1alpha1.BackendAttribute: "cloud"},
			}}
		})
		w.create(pv)
		own := attachmentTo("node-1", pv)
		w.create(own)
		_ = w.world.round()
		w.get(own)
		Expect(own.Status.Attached).To(BeFalse())
		w.expectOn()
	})

	It("is not attached to a node whose agent doesn't follow pods, beside kube-controller-manager, too", func() {
		w := newWorld(reconciler.ClassesScope)
		pv := Volume("data", func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "legacy"}}
		})
		attachment := &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: volume.AttachmentName(stowagev1alpha1.GCEDriver, legacyPath, "node-1")},
			Spec: storagev1.VolumeAttachmentSpec{
				Attacher: stowagev1alpha1.GCEDriver, NodeName: "node-1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv.Name},
			},
		}
		w.create(otherCloud("cloud"), machine("node-1"), pv, attachment)
		w.settle()

		w.get(attachment)
		Expect(attachment.Status.AttachError).To(HaveValue(HaveField("Message", ContainSubstring("isn't one whose agent follows pods"))))
	})
})
