package event

import (
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
)

// RecorderOf returns a recorder that sends the manager's events.
func RecorderOf(mgr ctrl.Manager) events.EventRecorder {
	return Bounded(mgr.GetEventRecorder("stowage-manager"))
}
