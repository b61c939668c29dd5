package integration_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("With the whole manager deciding what is attached", func() {
	It("a disk follows its pod, by what wakes and no retry", func(ctx SpecContext) {
		storage := fake.New()
		managed := func(name string) *corev1.Node {
			node := machine(name)
			node.Annotations = map[string]string{attach.ManagedAnnotation: "true"}
			return node
		}
		create(ctx, LocalBackend("cloud", func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.Local, object.Spec.GCE = nil, &stowagev1alpha1.GCEBackend{Project: "project", Zones: []string{"zone"}}
		}), managed("node-1"), managed("node-2"))
		one := manager{scope: reconciler.ClusterScope, kinds: []backend.Kind{
			fake.Kind{For: stowagev1alpha1.GCEType, Backend: storage},
		}}
		one.start()
		DeferCleanup(removeDisks)
		claim, first, second := Claim(InClass("cloud")), Pod("first", "node-1", "data"), Pod("second", "node-2", "data")

		create(ctx, first, claim)
		Eventually(attachedTo).WithArguments(ctx, "node-1").WithTimeout(soon).Should(HaveLen(1))
		Expect(users.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		pv := Volume(claim.Spec.VolumeName)
		Expect(users.Get(ctx, client.ObjectKeyFromObject(pv), pv)).To(Succeed())
		setInUse(ctx, "node-1", pv)

		create(ctx, second)
		Expect(users.Delete(ctx, first, client.GracePeriodSeconds(0))).To(Succeed())
		setInUse(ctx, "node-1")

		Eventually(attachedTo).WithArguments(ctx, "node-2").WithTimeout(soon).Should(HaveLen(1))
		Expect(attachedTo(ctx, "node-1")).To(BeEmpty())
		Expect(storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(HaveExactElements("gce://project/zone/node-2"))
		Expect(users.Delete(ctx, second, client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(attachedTo).WithArguments(ctx, "node-2").WithTimeout(soon).Should(BeEmpty())
		Eventually(storage.AttachedTo).WithArguments(pv.Spec.CSI.VolumeHandle).WithTimeout(soon).Should(BeEmpty())
	})
})

// attachedTo returns volumesAttached of a node.
func attachedTo(ctx context.Context, name string) ([]corev1.AttachedVolume, error) {
	node := &corev1.Node{}
	err := users.Get(ctx, client.ObjectKey{Name: name}, node)
	return node.Status.VolumesAttached, err
}
