// Package localdisk has what the agents of local disks share. They run on every node, beside a
// kubelet or not: diskagent for NodeDisks, volumeagent for NodeVolumes, recycling for scrubbed
// volumes. The packages below them, from the lowest: layout, slots and condition; identity,
// limit, room, spec and usage; inspect and store.
package localdisk

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/node/localdisk/store"
)

// Options are the dependencies of the reconcilers of NodeDisks and NodeVolumes.
type Options struct {
	// NodeName is the node of the volumes.
	NodeName string
	// Store makes and removes volumes. Both reconcilers have the same.
	Store *store.Store
	// Client writes, and reads from a cache of this node's NodeVolumes and NodeDisks.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Events records events for users.
	Events events.EventRecorder
	// Clock is the time. Default: the real clock.
	Clock clock.PassiveClock
	// Metrics has the metrics of volumes and disks. Nil: they aren't exported.
	Metrics prometheus.Registerer
}
