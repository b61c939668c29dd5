package stock_test

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(users.Create(ctx, object)).To(Succeed())
	}
}

// remove deletes objects, pods at once: no kubelet runs them.
func remove(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(client.IgnoreNotFound(users.Delete(ctx, object, client.GracePeriodSeconds(0)))).To(Succeed())
	}
}

// tidy removes pods and claims when the spec ends, and waits until their volumes are gone.
func tidy(objects ...client.Object) {
	DeferCleanup(func(ctx SpecContext) {
		remove(ctx, objects...)
		for _, object := range objects {
			if claim, is := object.(*corev1.PersistentVolumeClaim); is && claim.Spec.VolumeName != "" {
				eventuallyGone(ctx, Volume(claim.Spec.VolumeName))
			}
			eventuallyGone(ctx, object)
		}
	})
}

func eventuallyGone(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Eventually(func() error { return users.Get(ctx, client.ObjectKeyFromObject(object), object) }).
		WithContext(ctx).Should(MatchError(ContainSubstring("not found")), "%T %s", object, object.GetName())
}

// eventuallyBound waits until kube-controller-manager has bound a claim, and returns the
// volume.
func eventuallyBound(ctx context.Context, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	GinkgoHelper()
	pv := &corev1.PersistentVolume{}
	Eventually(func(g Gomega) {
		g.Expect(users.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		g.Expect(claim.Status.Phase).To(Equal(corev1.ClaimBound))
		g.Expect(users.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, pv)).To(Succeed())
		g.Expect(pv.Status.Phase).To(Equal(corev1.VolumeBound))
	}).WithContext(ctx).Should(Succeed(), "claim %s", claim.Name)
	return pv
}

// eventuallyPlaced waits until the scheduler has placed a pod, and returns the node.
func eventuallyPlaced(ctx context.Context, pod *corev1.Pod) string {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(users.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		g.Expect(pod.Spec.NodeName).NotTo(BeEmpty(), "%v", pod.Status.Conditions)
	}).WithContext(ctx).Should(Succeed())
	return pod.Spec.NodeName
}

// on has the scheduler place a pod on a node.
func on(pod *corev1.Pod, node string) *corev1.Pod {
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	return pod
}

// reasons are those of the events about an object.
func reasons(ctx context.Context, object client.Object) []string {
	GinkgoHelper()
	var found []string
	for _, event := range eventsOf(ctx, object) {
		found = append(found, event.Reason)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// messages are those of the events about an object.
func messages(ctx context.Context, object client.Object) (found []string) {
	GinkgoHelper()
	for _, event := range eventsOf(ctx, object) {
		found = append(found, event.Message)
	}
	return found
}

func eventsOf(ctx context.Context, object client.Object) []corev1.Event {
	GinkgoHelper()
	list := &corev1.EventList{}
	Expect(users.List(ctx, list, client.InNamespace(corev1.NamespaceDefault))).To(Succeed())
	return slices.DeleteFunc(list.Items, func(event corev1.Event) bool { return event.InvolvedObject.UID != object.GetUID() })
}
