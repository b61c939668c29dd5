package config_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// event is one that a controller reports, in the namespace default.
func event(controller string) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "event-", Namespace: metav1.NamespaceDefault},
		EventTime:  metav1.NowMicro(), ReportingController: controller, ReportingInstance: "pod-1",
		Type: corev1.EventTypeNormal, Reason: "Recorded", Action: "Recording", Note: "as it was",
		Regarding: corev1.ObjectReference{Namespace: metav1.NamespaceDefault},
	}
}

var _ = Describe("the limits of node agents", func() {
	var agent client.Client
	BeforeEach(func(ctx SpecContext) {
		apply(ctx, built(ctx, folder("run")))
		agent = behindKubelet("node-a")
		Eventually(func() error { return agent.Create(ctx, event("kubelet"), client.DryRunAll) }).
			WithTimeout(settled).Should(MatchError(ContainSubstring("must not write the events of others")))
	})

	It("let one write the events of node agents, and no others", func(ctx SpecContext) {
		again := client.RawPatch(types.MergePatchType, []byte(`{"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}}`))
		own, other := event("stowage-node-agent"), event("kubelet")
		Expect(agent.Create(ctx, own)).To(Succeed())
		Expect(agent.Patch(ctx, own, again)).To(Succeed())
		Expect(admin.Create(ctx, other)).To(Succeed())
		Expect(agent.Patch(ctx, other, again)).To(MatchError(ContainSubstring("must not write the events of others")))
		Expect(agent.Patch(ctx, other, client.RawPatch(types.MergePatchType, []byte(`{"reportingController": "stowage-node-agent"}`)))).
			NotTo(Succeed())
	})
})
