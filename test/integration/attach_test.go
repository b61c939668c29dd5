package integration_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/volume"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("With the whole manager running beside another controller that decides what is attached", func() {
	var storage *fake.Backend
	var one manager

	BeforeEach(func(ctx SpecContext) {
		storage = fake.New()
		one = manager{scope: reconciler.ClassesScope, kinds: []backend.Kind{
			fake.Kind{For: stowagev1alpha1.GCEType, Backend: storage},
		}}
		create(ctx, LocalBackend("cloud", func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.Local, object.Spec.StorageClass = nil, nil
			object.Spec.GCE = &stowagev1alpha1.GCEBackend{Project: "project", Zones: []string{"zone"}}
		}), machine("node-1"), machine("node-2"))
	})

	It("a volume moves as soon as its node has let go of it, by what wakes and no retry", func(ctx SpecContext) {
		one.start()
		DeferCleanup(removeDisks)
		pv := disk(ctx, storage, "disk")
		first, second := attachmentTo("node-1", pv), attachmentTo("node-2", pv)
		create(ctx, first)
		eventuallyAttached(ctx, storage, first, pv)
		setInUse(ctx, "node-1", pv)
		create(ctx, second)
		Eventually(func(g Gomega) {
			g.Expect(users.Get(ctx, client.ObjectKeyFromObject(second), second)).To(Succeed())
			g.Expect(second.Status.AttachError).NotTo(BeNil())
		}).WithTimeout(soon).Should(Succeed())

		Expect(users.Delete(ctx, first)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(users.Get(ctx, client.ObjectKeyFromObject(first), first)).To(Succeed())
			g.Expect(first.Status.DetachError).NotTo(BeNil())
		}).WithTimeout(soon).Should(Succeed())
		setInUse(ctx, "node-1")

		eventuallyAttached(ctx, storage, second, pv)
	})

	It("a slow cloud holds up no worker, and wakes what waits for it", func(ctx SpecContext) {
		one.start()
		DeferCleanup(removeDisks)
		release := storage.Hold()
		DeferCleanup(release)
		var waiting []*storagev1.VolumeAttachment
		var volumes []*corev1.PersistentVolume
		for number := range 40 {
			pv := disk(ctx, storage, name("disk", number))
			attachment := attachmentTo("node-1", pv)
			create(ctx, attachment)
			volumes, waiting = append(volumes, pv), append(waiting, attachment)
		}
		Eventually(storage.Calls).WithTimeout(soon).ShouldNot(BeEmpty())

		release()

		for i, attachment := range waiting {
			eventuallyAttached(ctx, storage, attachment, volumes[i])
		}
	})

	It("no volume is attached twice and none stays attached, though two managers believe that they lead", func(ctx SpecContext) {
		const disks = 20
		one.start()
		one.start()
		DeferCleanup(removeDisks)
		volumes := make([]*corev1.PersistentVolume, disks)
		for number := range disks {
			volumes[number] = disk(ctx, storage, name("disk", number))
		}
		inAnyOrder(2*disks, func(i int) { create(ctx, attachmentTo(name("node", 1+i%2), volumes[i/2])) })
		for _, pv := range volumes {
			Eventually(storage.AttachedTo).WithArguments(pv.Name).WithTimeout(soon).Should(HaveLen(1))
		}

		inAnyOrder(disks, func(i int) { Expect(users.Delete(ctx, attachmentTo("node-1", volumes[i]))).To(Succeed()) })
		for _, pv := range volumes {
			eventuallyAttached(ctx, storage, attachmentTo("node-2", pv), pv)
		}

		inAnyOrder(disks, func(i int) { Expect(users.Delete(ctx, attachmentTo("node-2", volumes[i]))).To(Succeed()) })
		Eventually(func() (found []backend.Attached, err error) { return storage.Attachments(ctx) }).WithTimeout(clearing).Should(BeEmpty())
	})
})

// machine is a Ready node that a cloud has a machine for.
func machine(name string) *corev1.Node {
	node := Node(name)
	node.Spec.ProviderID = "gce://project/zone/" + name
	return node
}

// disk is a volume that the storage has.
func disk(ctx context.Context, storage *fake.Backend, name string) *corev1.PersistentVolume {
	GinkgoHelper()
	pv := Volume(name)
	pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: stowagev1alpha1.GCEDriver, VolumeHandle: name,
		VolumeAttributes: map[string]string{stowagev1alpha1.BackendAttribute: "cloud"},
	}}
	storage.Begin(name, backend.Request{})
	create(ctx, pv)
	return pv
}

func attachmentTo(node string, pv *corev1.PersistentVolume) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: volume.AttachmentName(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle, node)},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: pv.Spec.CSI.Driver, NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv.Name},
		},
	}
}

// removeDisks takes the protection off volumes: no controller here does so.
func removeDisks(ctx SpecContext) {
	volumes := &corev1.PersistentVolumeList{}
	Expect(users.List(ctx, volumes)).To(Succeed())
	for i := range volumes.Items {
		pv := &volumes.Items[i]
		before := pv.DeepCopy()
		controllerutil.RemoveFinalizer(pv, "kubernetes.io/pv-protection")
		Expect(users.Patch(ctx, pv, client.MergeFrom(before))).To(Succeed())
	}
	removeEverything(ctx)
}

// setInUse makes a node say which volumes it uses.
func setInUse(ctx context.Context, name string, volumes ...*corev1.PersistentVolume) {
	GinkgoHelper()
	node := &corev1.Node{}
	Expect(users.Get(ctx, client.ObjectKey{Name: name}, node)).To(Succeed())
	before := node.DeepCopy()
	node.Status.Conditions = Node(name).Status.Conditions
	node.Status.VolumesInUse = nil
	for _, pv := range volumes {
		node.Status.VolumesInUse = append(node.Status.VolumesInUse, volume.UniqueName(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle))
	}
	Expect(users.Status().Patch(ctx, node, client.MergeFrom(before))).To(Succeed())
}

func eventuallyAttached(ctx context.Context, storage *fake.Backend, attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(users.Get(ctx, client.ObjectKeyFromObject(attachment), attachment)).To(Succeed())
		g.Expect(attachment.Status.Attached).To(BeTrue(), "%+v", attachment.Status)
	}).WithContext(ctx).WithTimeout(soon).Should(Succeed())
	Expect(storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(HaveExactElements("gce://project/zone/" + attachment.Spec.NodeName))
}
