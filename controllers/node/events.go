package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/node/memory"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/wake"
)

// podEvents records events for pods: what their volumes wait for.
type podEvents struct {
	client   client.Reader
	events   events.EventRecorder
	recorded memory.Recorded
}

// waiting is a pod, the step of one of its volumes that waits, and how many more of its volumes wait.
type waiting struct {
	pod  *corev1.Pod
	step attach.Step
	more int
}

// record records events, once for each situation. The API makes one event of those that a pod gets for the same reason, with the text
// of the first. So a pod gets one for all volumes that come to wait at once.
func (r *podEvents) record(ctx context.Context, s *snapshot, plan []attach.Step) {
	waits, situations := map[string]*waiting{}, []string{}
	for _, step := range plan {
		if step.Action != attach.Wait || step.Cause != attach.AttachedElsewhere && step.Cause != attach.NodeOff {
			continue
		}
		for _, pod := range s.users[step.Volume.Name] {
			situation := strings.Join(append([]string{string(pod.UID), string(step.Volume.Name), string(step.Cause)}, namesOf(step.OtherNodes)...), " ")
			if waits[situation] == nil {
				waits[situation] = &waiting{pod: pod, step: step}
				situations = append(situations, situation)
			}
		}
	}
	first, isNew := map[types.UID]*waiting{}, r.recorded.Add(s.Name, situations)
	for _, situation := range situations {
		wait := waits[situation]
		switch known := first[wait.pod.UID]; {
		case !isNew[situation]:
		case known != nil:
			known.more++
		default:
			first[wait.pod.UID] = wait
		}
	}
	for _, wait := range first {
		note := attach.Explain(wait.step, wait.pod, r.blockersOf(ctx, wait.step))
		if wait.more > 0 {
			note += fmt.Sprintf(" (%d more of its volumes wait, too)", wait.more)
		}
		r.events.Eventf(wait.pod, nil, corev1.EventTypeWarning, event.FailedAttachVolume, "Attach", "%s", note)
	}
}

func namesOf(others []attach.OtherNode) []string {
	var nodes []string
	for _, other := range others {
		nodes = append(nodes, other.Node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// blockersOf returns the pods for which other nodes have a volume.
func (r *podEvents) blockersOf(ctx context.Context, step attach.Step) []corev1.Pod {
	var blockers []corev1.Pod
	pods, err := podsOf(ctx, r.client, step.Volume)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing pods", "volume", step.Volume.String())
	}
	for i := range pods {
		if slices.Contains(namesOf(step.OtherNodes), pods[i].Spec.NodeName) && attach.NeedsVolumes(&pods[i], nil) {
			blockers = append(blockers, pods[i])
		}
	}
	return blockers
}

// podsOf returns the pods with a volume: through the claims of all PersistentVolumes that
// refer to it, or as inline volume.
func podsOf(ctx context.Context, cache client.Reader, volume attach.Volume) ([]corev1.Pod, error) {
	if volume.Source.PersistentVolumeName == nil {
		pods := &corev1.PodList{}
		err := cache.List(ctx, pods, client.MatchingFields{index.PodsByVolume: string(volume.Name)}, wake.Unhurried, client.UnsafeDisableDeepCopy)
		return pods.Items, err
	}
	volumes, err := volumesLike(ctx, cache, *volume.Source.PersistentVolumeName)
	if err != nil {
		return nil, err
	}
	var found []corev1.Pod
	for i := range volumes {
		ref := volumes[i].Spec.ClaimRef
		if ref == nil {
			continue
		}
		pods := &corev1.PodList{}
		err := cache.List(ctx, pods, client.InNamespace(ref.Namespace), client.MatchingFields{index.PodsByClaim: ref.Name}, wake.Unhurried, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("listing the pods of claim %s/%s: %w", ref.Namespace, ref.Name, err)
		}
		found = append(found, pods.Items...)
	}
	return found, nil
}

// volumesLike returns the PersistentVolumes that refer to the same storage as the given one.
func volumesLike(ctx context.Context, cache client.Reader, name string) ([]corev1.PersistentVolume, error) {
	pv := &corev1.PersistentVolume{}
	if err := cache.Get(ctx, client.ObjectKey{Name: name}, pv, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	handles := index.HandleOf(pv)
	if len(handles) == 0 {
		return []corev1.PersistentVolume{*pv}, nil
	}
	return index.VolumesOf(ctx, cache, handles[0], wake.Unhurried)
}
