package node

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/attachintent"
)

// tell records events for pods: what their volumes wait for, once for each situation.
func (r *Reconciler) tell(ctx context.Context, seen *nodeView, plan []attach.Step) {
	type telling struct {
		pod  *corev1.Pod
		step attach.Step
	}
	tellings, situations := map[string]telling{}, []string{}
	for _, step := range plan {
		if step.Action != attach.Wait || step.Cause != attach.AttachedElsewhere && step.Cause != attach.NodeOff {
			continue
		}
		for _, pod := range seen.users[step.Volume.Name] {
			situation := strings.Join(append([]string{string(pod.UID), string(step.Volume.Name), string(step.Cause)}, nodesIn(step.OtherNodes)...), " ")
			tellings[situation] = telling{pod, step}
			situations = append(situations, situation)
		}
	}
	for situation, isNew := range r.recorded.News(seen.Name, situations) {
		if !isNew {
			continue
		}
		pod, step := tellings[situation].pod, tellings[situation].step
		r.events.Eventf(pod, nil, corev1.EventTypeWarning, attachintent.ReasonFailedAttach, "Attach", "%s",
			attach.Explain(step, pod, r.blockersOf(ctx, step)))
	}
}

func nodesIn(holders []attach.OtherNode) []string {
	var nodes []string
	for _, holder := range holders {
		nodes = append(nodes, holder.Node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// blockersOf returns the pods for which other nodes have a volume.
func (r *Reconciler) blockersOf(ctx context.Context, step attach.Step) []corev1.Pod {
	var blockers []corev1.Pod
	pods, err := r.podsOf(ctx, step.Volume)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing pods", "volume", step.Volume.String())
	}
	for i := range pods {
		if slices.Contains(nodesIn(step.OtherNodes), pods[i].Spec.NodeName) && attach.NeedsVolumes(&pods[i], nil) {
			blockers = append(blockers, pods[i])
		}
	}
	return blockers
}
