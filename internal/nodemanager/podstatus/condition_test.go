package podstatus

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

func TestAPodsConditionSumsUpItsVolumes(t *testing.T) {
	waits := Progress{Name: "data", Err: resolve.WaitFor("waiting for claim default/data to be bound")}
	fails := Progress{Name: "logs", Err: errors.New("mounting: broken")}
	unserved := Progress{Name: "config", Err: fmt.Errorf("volume of type configMap is %w", volumes.ErrNotSupported)}
	full := Progress{Name: "scratch", Err: fmt.Errorf("it takes up too much: %w", volumes.ErrOverLimit)}
	done, works := Progress{Name: "done", Done: true}, Progress{Name: "works"}
	tests := map[string]struct {
		volumes []Progress
		want    string
		event   string
	}{
		"no volumes":             {nil, "True Ready all volumes are mounted (0)", ""},
		"all mounted":            {[]Progress{done, done}, "True Ready all volumes are mounted (2)", ""},
		"one still being worked": {[]Progress{done, works}, "", ""},
		"waiting":                {[]Progress{done, waits}, "False Pending volume data: waiting for claim default/data to be bound", ""},
		"waiting and working":    {[]Progress{works, waits}, "False Pending volume data: waiting for claim default/data to be bound", ""},
		"failed":                 {[]Progress{fails, done}, "False FailedMount volume logs: mounting: broken", "Warning FailedMount"},
		"not served":             {[]Progress{unserved}, "False NotSupported volume config: volume of type configMap is not supported by this version of Stowage", "Warning FailedMount"},
		"too much in it":         {[]Progress{full, waits, done}, "False SizeLimitExceeded volume scratch: it takes up too much: the volume has more than it may; volume data: waiting for claim default/data to be bound", "Warning SizeLimitExceeded"},
		"the worst is the reason": {
			[]Progress{waits, fails, unserved},
			"False FailedMount volume data: waiting for claim default/data to be bound; volume logs: mounting: broken; " +
				"volume config: volume of type configMap is not supported by this version of Stowage", "Warning FailedMount",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			condition, ok := ConditionOf(test.volumes)
			got, recorded := "", ""
			if ok {
				got = fmt.Sprintf("%s %s %s", condition.Status, condition.Reason, condition.Message)
				if event, ok := EventOf(condition, test.volumes, PodEvent{}); ok {
					recorded = event.Kind + " " + event.Reason
				}
			}
			if got != test.want || recorded != test.event {
				t.Errorf("got %q and event %q, want %q and %q", got, recorded, test.want, test.event)
			}
		})
	}
}

func TestAnEventSaysThatAllIsMountedOnlyAfterAWarning(t *testing.T) {
	ready := corev1.PodCondition{Reason: stowagev1alpha1.ReasonReady}
	for kind, want := range map[string]bool{"": false, corev1.EventTypeNormal: false, corev1.EventTypeWarning: true} {
		if event, recorded := EventOf(ready, nil, PodEvent{Kind: kind}); recorded != want {
			t.Errorf("after %q: %v, %+v", kind, recorded, event)
		}
	}
}

func TestAConditionIsNewOnlyIfItSaysSomethingNew(t *testing.T) {
	others := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: others}}
	start := time.Now()
	steps := []struct {
		status  corev1.ConditionStatus
		message string
		isNew   bool
		since   time.Time
	}{
		{corev1.ConditionFalse, "waiting", true, start},
		{corev1.ConditionFalse, "waiting", false, start},
		{corev1.ConditionFalse, "waiting for something else", true, start},
		{corev1.ConditionTrue, "mounted", true, start.Add(3 * time.Minute)},
	}
	for i, step := range steps {
		condition := corev1.PodCondition{Type: "x", Status: step.status, Message: step.message}
		condition, isNew := Transition(pod, condition, start.Add(time.Duration(i)*time.Minute))
		if isNew != step.isNew {
			t.Errorf("step %d: it is new: %v", i, isNew)
		}
		if since := condition.LastTransitionTime; !since.Time.Equal(step.since) {
			t.Errorf("step %d: it is said to be so since %s", i, since)
		}
		pod.Status.Conditions = append(slices.Clone(others), condition)
	}
}

func TestWhenToReconcileAgain(t *testing.T) {
	for n, want := range map[int]time.Duration{0: 500 * time.Millisecond, 1: 500 * time.Millisecond, 2: time.Second, 5: 8 * time.Second, 6: 10 * time.Second, 100: 10 * time.Second} {
		if got := ClaimWait(n); got != want {
			t.Errorf("look %d comes after %s, want %s", n, got, want)
		}
	}
	volumes := []Progress{{Done: true}, {Again: time.Second}, {Again: time.Millisecond}, {}}
	if got := Soonest(volumes); got != time.Millisecond {
		t.Errorf("the soonest is %s", got)
	}
	if got := Soonest(volumes[:1]); got != 0 {
		t.Errorf("nothing is to come, but after %s", got)
	}
}
