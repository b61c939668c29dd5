package facts

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// recent is how old an event may be to tell something of now.
const recent = time.Hour

// MountEvents are the reasons with which a kubelet and the attach-detach controller say why a pod
// doesn't get its volumes.
var MountEvents = []string{"FailedMount", "FailedAttachVolume", "FailedMapVolume"}

// RecentEvents are the recent ones of events, the newest first.
func RecentEvents(all []corev1.Event, now time.Time) []corev1.Event {
	all = slices.DeleteFunc(all, func(e corev1.Event) bool { return now.Sub(timeOf(&e)) > recent })
	slices.SortStableFunc(all, func(a, b corev1.Event) int { return timeOf(&b).Compare(timeOf(&a)) })
	return all
}

// timeOf is when an event happened last.
func timeOf(event *corev1.Event) time.Time {
	latest := event.CreationTimestamp.Time
	for _, at := range []time.Time{event.LastTimestamp.Time, event.EventTime.Time} {
		if at.After(latest) {
			latest = at
		}
	}
	if event.Series != nil && event.Series.LastObservedTime.After(latest) {
		latest = event.Series.LastObservedTime.Time
	}
	return latest
}

// Newest is the newest event of the given reasons, or of any, as "Reason: message"; a warning if
// warning is set. "": there is none. The events are those of RecentEvents.
func Newest(events []corev1.Event, warning bool, reasons ...string) string {
	for i := range events {
		e := &events[i]
		if warning && e.Type != corev1.EventTypeWarning || len(reasons) > 0 && !slices.Contains(reasons, e.Reason) {
			continue
		}
		return e.Reason + ": " + e.Message
	}
	return ""
}
