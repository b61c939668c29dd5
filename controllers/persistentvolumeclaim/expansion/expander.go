package expansion

import (
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/drivers"
)

// Expander grows the volumes of bound claims.
type Expander struct {
	client  client.Client
	live    client.Reader
	drivers drivers.Drivers
	scope   reconciler.Scope
	open    step.Open
	events  events.EventRecorder
}

// New makes an expander.
func New(deps reconciler.Dependencies, open step.Open) *Expander {
	return &Expander{client: deps.Client, live: deps.Live, drivers: drivers.New(deps.Client), scope: deps.Scope, open: open, events: deps.Events}
}
