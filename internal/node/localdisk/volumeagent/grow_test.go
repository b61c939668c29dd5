package volumeagent_test

import (
	"context"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/volumeagent"
)

var _ = Describe("A volume that is to grow", func() {
	It("takes no room from others by a request that wasn't granted", func(ctx context.Context) {
		n := newNode()
		n.disk("fast", gibibyte)
		greedy := n.made(ctx)
		request(ctx, greedy, "2Gi")
		n.reconcile(ctx, greedy)

		Expect(granted(ctx, greedy)).To(Equal("False Exhausted"))
		n.made(ctx, sized("900Mi"))
	})

	It("has what it requests once it requests less", func(ctx context.Context) {
		n := newNode()
		n.disk("fast", gibibyte)
		volume := n.made(ctx)
		for _, size := range []string{"2Gi", "500Mi"} {
			request(ctx, volume, size)
			n.reconcile(ctx, volume)
		}

		Expect(granted(ctx, volume)).To(Equal("True Ready"))
		Expect(read(ctx, volume).Status.Capacity.String()).To(Equal("500Mi"))
	})

	It("keeps its new room when the report is lost", func(ctx context.Context) {
		n := newNode()
		n.disk("fast", gibibyte)
		volume := n.made(ctx)
		request(ctx, volume, "900Mi")
		mute := n.reconcilerWithLostReports()
		_, err := mute.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(volume)})
		Expect(err).To(HaveOccurred())

		other := n.volume(ctx, sized("200Mi"))
		n.reconcile(ctx, other)
		n.reconcile(ctx, volume)

		Expect(provisioned(ctx, other)).To(Equal("False Exhausted"))
		Expect(granted(ctx, volume)).To(Equal("True Ready"))
	})

	It("loses its new room when the request is withdrawn before the report", func(ctx context.Context) {
		n := newNode()
		n.disk("fast", gibibyte)
		volume := n.made(ctx)
		request(ctx, volume, "900Mi")
		mute := n.reconcilerWithLostReports()
		_, err := mute.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(volume)})
		Expect(err).To(HaveOccurred())

		request(ctx, volume, "100Mi")
		n.made(ctx, sized("900Mi"))
		request(ctx, volume, "500Mi")
		n.reconcile(ctx, volume)

		Expect(granted(ctx, volume)).To(Equal("False Exhausted"))
	})
})

// request requests another capacity, as the manager does.
func request(ctx context.Context, volume *stowagev1alpha1.NodeVolume, size string) {
	GinkgoHelper()
	before := read(ctx, volume)
	after := before.DeepCopy()
	after.Spec.Capacity = resource.MustParse(size)
	Expect(admin.Patch(ctx, after, client.MergeFrom(before))).To(Succeed())
}

func granted(ctx context.Context, volume *stowagev1alpha1.NodeVolume) string {
	GinkgoHelper()
	verdict, _ := conditionOf(ctx, volume, stowagev1alpha1.GrantedCondition)
	return verdict
}

// reconcilerWithLostReports has the node's store, and a client that writes no status.
func (n *node) reconcilerWithLostReports() *volumeagent.Reconciler {
	GinkgoHelper()
	options := n.options(losingReports())
	options.Store = n.reconciler.Store
	return volumeagent.NewReconciler(options)
}

// losingReports is a client that writes no status.
func losingReports() client.Client {
	plain, err := client.NewWithWatch(server.Config, client.Options{Scheme: objects})
	Expect(err).NotTo(HaveOccurred())
	return interceptor.NewClient(plain, interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return errors.New("the report is lost")
		},
	})
}
