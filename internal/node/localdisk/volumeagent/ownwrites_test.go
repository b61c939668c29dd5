package volumeagent_test

import (
	"context"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/volumeagent"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

var _ = Describe("A change of a volume", func() {
	var n *node
	var volume, before *stowagev1alpha1.NodeVolume

	// written reads the volume after the agent made it.
	written := func(ctx context.Context) *stowagev1alpha1.NodeVolume {
		GinkgoHelper()
		n.reconcile(ctx, volume)
		Expect(ready(ctx, volume)).To(Equal("True Ready"))
		return read(ctx, volume)
	}

	BeforeEach(func(ctx context.Context) {
		n = newNode()
		volume = n.volume(ctx)
		before = read(ctx, volume)
	})

	It("doesn't wake it when its agent wrote just that", func(ctx context.Context) {
		Expect(n.reconciler.IsWokenBy(before, written(ctx))).To(BeFalse())
	})

	// removed has the agent remove the volume, and returns what it was right before its removal began, and then.
	removed := func(ctx context.Context) (ordered, removing *stowagev1alpha1.NodeVolume) {
		GinkgoHelper()
		reclaim(ctx, written(ctx))
		ordered = read(ctx, volume)
		n.reconciler = volumeagent.NewReconciler(n.options(n.afterStatus(func() { removing = read(ctx, volume) })))
		n.reconcile(ctx, volume)
		Expect(read(ctx, volume)).To(BeNil())
		Expect(removing.Status.Removing).To(BeTrue())
		return ordered, removing
	}

	// grown has the agent make the volume and grow it. It returns what the volume was when it was made, when a person
	// wanted it to grow, and when it had grown.
	grown := func(ctx context.Context) (first, growing, second *stowagev1alpha1.NodeVolume) {
		GinkgoHelper()
		first = written(ctx)
		growing = first.DeepCopy()
		sized("200Mi")(growing)
		Expect(admin.Patch(ctx, growing, client.MergeFrom(first))).To(Succeed())
		second = written(ctx)
		Expect(second.Status.Capacity.String()).To(Equal("200Mi"))
		return first, growing, second
	}

	It("doesn't wake it when its agent wrote a second time before a watch shows the first", func(ctx context.Context) {
		first, growing, second := grown(ctx)
		Expect(n.reconciler.IsWokenBy(before, first)).To(BeFalse())
		Expect(n.reconciler.IsWokenBy(growing, second)).To(BeFalse())
	})

	It("wakes it when a status comes that its agent wrote before the last that came", func(ctx context.Context) {
		first, growing, second := grown(ctx)

		Expect(n.reconciler.IsWokenBy(growing, second)).To(BeFalse())
		Expect(n.reconciler.IsWokenBy(before, first)).To(BeTrue())
	})

	It("doesn't wake it when its agent wrote that its removal begins", func(ctx context.Context) {
		ordered, removing := removed(ctx)
		Expect(n.reconciler.IsWokenBy(ordered, removing)).To(BeFalse())
	})

	It("wakes it when its agent wrote that about a volume that is gone", func(ctx context.Context) {
		ordered, removing := removed(ctx)
		n.reconcile(ctx, volume)
		Expect(n.reconciler.IsWokenBy(ordered, removing)).To(BeTrue())
	})

	DescribeTable("wakes it when another wrote anything", func(ctx context.Context, change func(*stowagev1alpha1.NodeVolume)) {
		now := written(ctx)
		change(now)
		Expect(n.reconciler.IsWokenBy(before, now)).To(BeTrue())
	},
		Entry("of its metadata", func(volume *stowagev1alpha1.NodeVolume) {
			volume.Labels = map[string]string{stowagev1alpha1.RetainedLabel: "true"}
		}),
		Entry("of its spec", sized("200Mi")),
		Entry("of its status", func(volume *stowagev1alpha1.NodeVolume) {
			meta.RemoveStatusCondition(&volume.Status.Conditions, stowagev1alpha1.ReadyCondition)
		}),
	)

	// ordered is the volume before and after the order to remove its data.
	ordered := func(ctx context.Context) (before, now *stowagev1alpha1.NodeVolume) {
		GinkgoHelper()
		before = written(ctx)
		now = before.DeepCopy()
		now.Spec.RemoveData, now.Generation = true, before.Generation+1
		return before, now
	}

	It("doesn't wake it when it is the order to remove it, before it is deleted", func(ctx context.Context) {
		before, now := ordered(ctx)
		Expect(n.reconciler.IsWokenBy(before, now)).To(BeFalse())
	})

	DescribeTable("wakes it when the order to remove it comes with more", func(ctx context.Context, change func(before, now *stowagev1alpha1.NodeVolume)) {
		before, now := ordered(ctx)
		change(before, now)
		Expect(n.reconciler.IsWokenBy(before, now)).To(BeTrue())
	},
		Entry("its deletion", func(_, now *stowagev1alpha1.NodeVolume) { now.DeletionTimestamp = new(metav1.Now()) }),
		Entry("after its deletion", func(before, now *stowagev1alpha1.NodeVolume) {
			before.DeletionTimestamp = new(metav1.Now())
			now.DeletionTimestamp = before.DeletionTimestamp
		}),
		Entry("a label", func(_, now *stowagev1alpha1.NodeVolume) {
			now.Labels = map[string]string{stowagev1alpha1.RetainedLabel: "true"}
		}),
		Entry("another capacity", func(_, now *stowagev1alpha1.NodeVolume) { sized("200Mi")(now) }),
		Entry("another status", func(_, now *stowagev1alpha1.NodeVolume) { now.Status.Path = "/elsewhere" }),
		Entry("given before, and once more", func(before, _ *stowagev1alpha1.NodeVolume) { before.Spec.RemoveData = true }),
		Entry("withdrawn", func(before, now *stowagev1alpha1.NodeVolume) {
			before.Spec.RemoveData, now.Spec.RemoveData = true, false
		}),
	)

	It("wakes it when the same status comes a second time, after another wrote one", func(ctx context.Context) {
		now := written(ctx)
		Expect(n.reconciler.IsWokenBy(before, now)).To(BeFalse())
		Expect(n.reconciler.IsWokenBy(before, now)).To(BeTrue())
	})
})

var _ = Describe("A volume that a running agent removes", func() {
	It("is read live once, as its removal begins", func(ctx context.Context) {
		n := newNode()
		var reads atomic.Int32
		n.live = &countingReader{Reader: n.api, reads: &reads}
		n.startManager()
		volume := n.volume(ctx)
		Eventually(ready).WithArguments(ctx, volume).Should(Equal("True Ready"))
		reads.Store(0)

		reclaim(ctx, volume)
		Eventually(read).WithArguments(ctx, volume).Should(BeNil())

		Consistently(reads.Load).WithTimeout(time.Second).Should(BeEquivalentTo(1))
	})

	It("isn't read live again while a cache still has it", func(ctx context.Context) {
		n := newNode()
		volume := n.made(ctx)
		reclaim(ctx, volume)
		var reads atomic.Int32
		n.live = &countingReader{Reader: n.api, reads: &reads}
		n.reconciler = volumeagent.NewReconciler(n.options(&staleClient{Client: n.api, seen: read(ctx, volume)}))

		n.reconcile(ctx, volume)
		Expect(read(ctx, volume)).To(BeNil())
		Expect(n.reconcile(ctx, volume)).To(BeZero())

		Expect(reads.Load()).To(BeEquivalentTo(1))
	})
})

// countingReader counts the objects that are read.
type countingReader struct {
	client.Reader
	reads *atomic.Int32
}

func (r *countingReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	r.reads.Add(1)
	return r.Reader.Get(ctx, key, object, options...)
}

// afterStatus is the agent's client. It calls a function after each write of a status.
func (n *node) afterStatus(done func()) client.Client {
	GinkgoHelper()
	plain, err := client.NewWithWatch(server.As(apiserver.Agent(n.name)), client.Options{Scheme: objects})
	Expect(err).NotTo(HaveOccurred())
	return interceptor.NewClient(plain, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, plain client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			err := plain.SubResource(sub).Patch(ctx, object, patch, options...)
			done()
			return err
		},
	})
}
