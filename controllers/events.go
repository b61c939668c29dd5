package controllers

import (
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-dev/stowage/internal/event"
)

// recorderOf sends the manager's events.
func recorderOf(mgr ctrl.Manager) events.EventRecorder {
	return event.Bounded(mgr.GetEventRecorder("stowage-manager"))
}
