// Package localdisk has what the agents of local disks share, which run on every node, beside
// a kubelet or not: diskagent for NodeDisks, volumeagent for NodeVolumes, recycling for
// scrubbed volumes. The packages below them, from the lowest: layout; identity, limit, room
// and usage; inspect and store.
package localdisk

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/node/localdisk/store"
)

// Options are what the reconcilers are made of.
type Options struct {
	// NodeName is the node whose volumes are made.
	NodeName string
	// Store makes them. Both reconcilers have the same.
	Store *store.Store
	// Client reads from a cache that holds this node's NodeVolumes and NodeDisks,
	// and writes.
	Client client.Client
	// Live reads from the API server itself.
	Live client.Reader
	// Events tells users.
	Events events.EventRecorder
	// Clock is the time. Default: the machine's.
	Clock clock.PassiveClock
	// Metrics take the numbers of volumes and disks. Nil: nobody counts them.
	Metrics prometheus.Registerer
}
