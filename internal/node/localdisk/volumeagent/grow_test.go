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

var _ = Describe("A volume that is asked to grow", func() {
	It("holds up no other by what it asks for and was not given", func(ctx context.Context) {
		n := newNode()
		n.disk("fast", gibibyte)
		greedy := n.made(ctx)
		ask(ctx, greedy, "2Gi")
		n.reconcile(ctx, greedy)

		Expect(granted(ctx, greedy)).To(Equal("False Exhausted"))
		n.made(ctx, asking("900Mi"))
	})

	It("is given what it asks for once it asks for less", func(ctx context.Context) {
		n := newNode()
		n.disk("fast", gibibyte)
		volume := n.made(ctx)
		for _, size := range []string{"2Gi", "500Mi"} {
			ask(ctx, volume, size)
			n.reconcile(ctx, volume)
		}

		Expect(granted(ctx, volume)).To(Equal("True Ready"))
		Expect(read(ctx, volume).Status.Capacity.String()).To(Equal("500Mi"))
	})

	It("keeps the room that it was given when the answer was lost on the way", func(ctx context.Context) {
		n := newNode()
		n.disk("fast", gibibyte)
		volume := n.made(ctx)
		ask(ctx, volume, "900Mi")
		mute := volumeagent.NewReconciler(n.options(unheard()))
		mute.Store = n.reconciler.Store
		_, err := mute.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(volume)})
		Expect(err).To(HaveOccurred())

		other := n.volume(ctx, asking("200Mi"))
		n.reconcile(ctx, other)
		n.reconcile(ctx, volume)

		Expect(provisioned(ctx, other)).To(Equal("False Exhausted"))
		Expect(granted(ctx, volume)).To(Equal("True Ready"))
	})

	It("gives back what was taken back before anybody was told", func(ctx context.Context) {
		n := newNode()
		n.disk("fast", gibibyte)
		volume := n.made(ctx)
		ask(ctx, volume, "900Mi")
		mute := volumeagent.NewReconciler(n.options(unheard()))
		mute.Store = n.reconciler.Store
		_, err := mute.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(volume)})
		Expect(err).To(HaveOccurred())

		ask(ctx, volume, "100Mi")
		n.made(ctx, asking("900Mi"))
		ask(ctx, volume, "500Mi")
		n.reconcile(ctx, volume)

		Expect(granted(ctx, volume)).To(Equal("False Exhausted"))
	})
})

// ask asks for another capacity, as the manager does.
func ask(ctx context.Context, volume *stowagev1alpha1.NodeVolume, size string) {
	GinkgoHelper()
	before := read(ctx, volume)
	after := before.DeepCopy()
	after.Spec.Capacity = resource.MustParse(size)
	Expect(admin.Patch(ctx, after, client.MergeFrom(before))).To(Succeed())
}

func granted(ctx context.Context, volume *stowagev1alpha1.NodeVolume) string {
	GinkgoHelper()
	verdict, _ := said(ctx, volume, stowagev1alpha1.GrantedCondition)
	return verdict
}

// unheard is a client whose reports are lost.
func unheard() client.Client {
	plain, err := client.NewWithWatch(server.Config, client.Options{Scheme: objects})
	Expect(err).NotTo(HaveOccurred())
	return interceptor.NewClient(plain, interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return errors.New("the report is lost")
		},
	})
}
