package gce

import (
	"context"
	"testing"
	"time"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/gcemock"
)

func TestTheContractIsKept(t *testing.T) {
	for name, world := range map[string]func(*testing.T) *world{
		"where operations are waited for": func(t *testing.T) *world { return newWorld(t) },
		"without waiting for operations": func(t *testing.T) *world {
			w := newWorld(t, func(options *gcemock.Options) { options.Latency = 20 * time.Millisecond })
			w.inProgressAtOnce()
			return w
		},
		"where disks are replicated": func(t *testing.T) *world {
			w := newWorld(t)
			w.replicated = true
			return w
		},
		"where lists have many pages": func(t *testing.T) *world {
			w := newWorld(t)
			w.kind.clients.Limits.Page = 1
			return w
		},
	} {
		t.Run(name, func(t *testing.T) {
			backendtest.Contract(t, func(t *testing.T) (backend.Backend, func(string) bool) {
				w := world(t)
				return w.open(), w.has
			})
		})
	}
}

func TestTheContractOfSnapshotsIsKept(t *testing.T) {
	for name, change := range map[string]func(*gcemock.Options){
		"where operations are waited for": func(*gcemock.Options) {},
		"where uploads take a while":      func(options *gcemock.Options) { options.Latency = 20 * time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			backendtest.SnapshotContract(t, func(t *testing.T) (backend.Backend, func(string) bool) {
				w := newWorld(t, change)
				return readySnapshots{w.open()}, w.has
			})
		})
	}
}

// readySnapshots waits until a snapshot is ready, as restores do.
type readySnapshots struct{ *gceBackend }

func (r readySnapshots) CreateSnapshot(ctx context.Context, request backend.SnapshotRequest) (*backend.Snapshot, error) {
	made, err := r.gceBackend.CreateSnapshot(ctx, request)
	return made, untilReady(made, err)
}

func TestTheContractOfAttachingIsKept(t *testing.T) {
	for name, world := range map[string]func(*testing.T) *world{
		"where operations are waited for": func(t *testing.T) *world { return newWorld(t) },
		"without waiting for operations": func(t *testing.T) *world {
			w := newWorld(t, func(options *gcemock.Options) { options.Latency = 20 * time.Millisecond })
			w.inProgressAtOnce()
			return w
		},
	} {
		t.Run(name, func(t *testing.T) {
			backendtest.AttachContract(t, func(t *testing.T) backendtest.Machines {
				w := world(t)
				w.withExisting()
				return backendtest.Machines{
					Backend:  w.open(allowing, func(spec *stowagev1alpha1.GCEBackend) { spec.Zones = []string{zoneA} }),
					Existing: legacy,
					Nodes:    [2]backend.NodeIdentity{node("node-1"), node("node-2")},
					Absent:   node("node-9"),
					Stop:     w.stopInstance, Remove: w.removeInstance,
				}
			})
		})
	}
}

func (w *world) stopInstance(of backend.NodeIdentity) {
	operation, err := w.compute.Instances.Stop(project, zoneA, of.Name).Do()
	w.ended(zoneA, operation, err)
}

func (w *world) removeInstance(of backend.NodeIdentity) {
	operation, err := w.compute.Instances.Delete(project, zoneA, of.Name).Do()
	w.ended(zoneA, operation, err)
}
