package provisioning

import (
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/binding"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/datasource"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/protection"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/provisioning/owncall"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/drivers"
	"github.com/stowage-dev/stowage/internal/liveread"
)

// Provisioner provisions volumes from backends, and removes storage of claims that do not need
// it any more.
type Provisioner struct {
	client client.Client
	live   client.Reader
	shared liveread.Reads
	// drivers are those for which volumes are provisioned.
	drivers drivers.Drivers
	scope   reconciler.Scope
	// namespace is the manager's own, with the Secrets for CSI drivers.
	namespace string
	index     *binder.Index
	open      step.Open
	// untilRefresh returns the time until the claims of a class check again.
	untilRefresh func(class string) time.Duration
	binder       *binding.Binder
	protector    *protection.Protector
	sources      *datasource.Finder
	refusals     refusals
	calls        owncall.Calls
	events       events.EventRecorder
}

// Parts are the parts of a provisioner beside the dependencies of all reconcilers.
type Parts struct {
	// Index explains why no volume fits.
	Index *binder.Index
	// Open opens backends.
	Open step.Open
	// UntilRefresh returns the time until the claims of a class check again.
	UntilRefresh func(class string) time.Duration
	Binder       *binding.Binder
	Protector    *protection.Protector
	Sources      *datasource.Finder
}

// New makes a provisioner.
func New(deps reconciler.Dependencies, parts Parts) *Provisioner {
	return &Provisioner{
		client: deps.Client, live: deps.Live, shared: deps.Reads,
		drivers: drivers.New(deps.Client), scope: deps.Scope, namespace: deps.Namespace, index: parts.Index, open: parts.Open,
		untilRefresh: parts.UntilRefresh, binder: parts.Binder, protector: parts.Protector, sources: parts.Sources, events: deps.Events, refusals: newRefusals(), calls: owncall.New(deps.Term),
	}
}
