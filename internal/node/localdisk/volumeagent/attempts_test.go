package volumeagent_test

import (
	"context"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/volumeagent"
)

var _ = Describe("A volume that an agent makes", func() {
	var n *node
	var there *stowagev1alpha1.NodeVolume
	var reads atomic.Int32

	BeforeEach(func(ctx context.Context) {
		n = newNode()
		there = n.volume(ctx)
		reads.Store(0)
		n.live = &countingReader{Reader: n.api, reads: &reads}
		n.reconciler = volumeagent.NewReconciler(n.options(n.api))
	})

	It("is read live before, if an earlier agent may have made it", func(ctx context.Context) {
		n.reconcile(ctx, there)
		Expect(ready(ctx, there)).To(Equal("True Ready"))
		Expect(reads.Load()).To(BeEquivalentTo(1))
	})

	It("is read live before, if an earlier agent may have made it, though the cache is at one of its name that is gone", func(ctx context.Context) {
		cache := &lacking{Client: n.api}
		n.reconciler = volumeagent.NewReconciler(n.options(cache))
		n.reconcile(ctx, n.volume(ctx))
		cache.name = there.Name
		n.reconcile(ctx, there)
		cache.name = ""
		reads.Store(0)

		n.reconcile(ctx, there)

		Expect(ready(ctx, there)).To(Equal("True Ready"))
		Expect(reads.Load()).To(BeEquivalentTo(1))
	})

	It("isn't, if it came after that agent, and none tried to make it before", func(ctx context.Context) {
		n.reconcile(ctx, there)
		reads.Store(0)
		n.made(ctx)
		Expect(reads.Load()).To(BeZero())
	})

	It("is, if it took more than one attempt", func(ctx context.Context) {
		n.disk("fast", gibibyte)
		n.reconcile(ctx, there)
		volume := n.volume(ctx, sized("2Gi"))
		reads.Store(0)
		n.reconcile(ctx, volume)
		Expect(provisioned(ctx, volume)).To(Equal("False Exhausted"))
		Expect(reads.Load()).To(BeZero())

		n.reconcile(ctx, volume)
		Expect(reads.Load()).To(BeEquivalentTo(1))
	})

	It("isn't, if another of its name was made before", func(ctx context.Context) {
		n.reconcile(ctx, there)
		volume := n.made(ctx)
		reclaim(ctx, volume)
		n.reconcile(ctx, volume)
		Expect(read(ctx, volume)).To(BeNil())
		reads.Store(0)

		volume.ObjectMeta.ResourceVersion, volume.ObjectMeta.UID, volume.Spec.RemoveData = "", "", false
		Expect(admin.Create(ctx, volume)).To(Succeed())
		n.reconcile(ctx, volume)

		Expect(ready(ctx, volume)).To(Equal("True Ready"))
		Expect(reads.Load()).To(BeZero())
	})

	It("is, if it has data of another object", func(ctx context.Context) {
		n.reconcile(ctx, there)
		volume := n.made(ctx)
		before := volume.DeepCopy()
		Expect(admin.Delete(ctx, volume)).To(Succeed())
		volume = read(ctx, volume)
		volume.Finalizers = nil
		Expect(admin.Update(ctx, volume)).To(Succeed())
		reads.Store(0)

		before.ObjectMeta.ResourceVersion, before.ObjectMeta.UID, before.Spec.Adopt = "", "", true
		Expect(admin.Create(ctx, before)).To(Succeed())
		n.reconcile(ctx, before)

		Expect(ready(ctx, before)).To(Equal("True Ready"))
		Expect(reads.Load()).To(BeEquivalentTo(1))
	})
})

// lacking is a cache that lacks the object of a name.
type lacking struct {
	client.Client
	name string
}

func (c *lacking) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if key.Name == c.name {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return c.Client.Get(ctx, key, object, options...)
}
