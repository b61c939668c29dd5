// Package csicontroller serves a StorageBackend of one of Stowage's own drivers by the Identity and
// Controller services of the Container Storage Interface, on a socket: for tools that speak CSI, and for
// its conformance tests. No pod needs it, as the manager serves claims itself.
//
// It remembers no volume and no snapshot. The id of a volume or snapshot follows from the name in the call, and the
// owner record at the storage is compared with each repeat. Such an id is no claim's: calls change and delete only
// what other calls made, and never a volume or snapshot of the manager. Of a claim's volume they make snapshots.
package csicontroller

import (
	"context"
	"regexp"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/named"
)

// Options are what a service needs.
type Options struct {
	// Name of the StorageBackend.
	Name string
	// Driver is the name by which the service is known. Empty: that of the backend's driver.
	Driver string
	// Cluster identifies the cluster: several may use one project, or one share.
	Cluster types.UID
	// Live reads StorageBackends and nodes from the API server.
	Live client.Reader
	// VolumesOf returns the PersistentVolumes of a CSI driver with a handle. A cache may answer.
	VolumesOf func(ctx context.Context, driver, handle string) ([]corev1.PersistentVolume, error)
	// Backends are the kinds of storage.
	Backends *backend.Registry
	// CSISnapshotter are drivers whose VolumeSnapshotContents the manager leaves to csi-snapshotter.
	CSISnapshotter []string
	// Version is this program's.
	Version string
}

// Service is the Identity and the Controller service of one StorageBackend. All methods can be called
// concurrently. Of two calls for one volume or snapshot at the same time, it refuses the second as Aborted.
type Service struct {
	csispec.UnimplementedControllerServer
	csispec.UnimplementedIdentityServer
	Options
	calls pending
}

// New returns a service. It reads nothing before the first call.
func New(options Options) *Service {
	return &Service{Options: options, calls: pending{keys: map[string]bool{}}}
}

// storage is a backend, and the object that describes it.
type storage struct {
	backend.Backend
	object *stowagev1alpha1.StorageBackend
}

// open opens the backend as its object is now.
func (s *Service) open(ctx context.Context) (storage, error) {
	object := &stowagev1alpha1.StorageBackend{}
	if err := s.Live.Get(ctx, client.ObjectKey{Name: s.Name}, object); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return storage{}, backend.Unavailable.Errorf("there is no StorageBackend %s: create it", s.Name)
		}
		return storage{}, backend.Unavailable.Errorf("reading StorageBackend %s: %w", s.Name, err)
	}
	if object.Spec.CSI != nil {
		return storage{}, backend.Invalid.Errorf("StorageBackend %s is of kind csi: call its driver %s itself", s.Name, backend.DriverOf(object))
	}
	opened, err := s.Backends.Open(object)
	return storage{opened, object}, err
}

// alone makes a call about a volume or a snapshot, and refuses a second one until it has ended.
func (s *Service) alone(ctx context.Context, id string, call func(b storage) error) error {
	end, err := s.calls.begin(id)
	if err != nil {
		return err
	}
	defer end()
	b, err := s.open(ctx)
	if err != nil {
		return err
	}
	return call(b)
}

// is reports whether a backend has an ability.
func is[Ability any](b backend.Backend) bool {
	_, can := backend.As[Ability](b)
	return can
}

// existing returns the record of a volume that a call made, or an error of kind NotFound.
func (s storage) existing(ctx context.Context, id string) (backend.Held, error) {
	if !named.IsVolume(id) {
		return backend.Held{}, notOurs(id)
	}
	return s.find(ctx, func(held backend.Held) bool { return held.ID == id && isVolume(held) })
}

// find returns the record that is sought, or an error of kind NotFound.
func (s storage) find(ctx context.Context, isSought func(backend.Held) bool) (backend.Held, error) {
	for after := ""; ; {
		page, next, err := backend.ListAfter(ctx, s.Backend, after)
		if err != nil {
			return backend.Held{}, err
		}
		for _, held := range page {
			if isSought(held) {
				return held, nil
			}
		}
		if next == "" {
			return backend.Held{}, backend.NotFound.Errorf("the storage has none that a call of this socket made under this name")
		}
		after = next
	}
}

// isVolume reports whether a record is that of a volume that a call made. Storage without a record is
// only reported by the audit.
func isVolume(held backend.Held) bool {
	return named.IsVolume(held.ID) && held.Snapshot == "" && held.Node == ""
}

// isSnapshot reports the same of a snapshot.
func isSnapshot(held backend.Held) bool { return named.IsSnapshot(held.ID) && held.Snapshot != "" }

// notOurs is the error of an id that no call returned. The id is quoted, as the caller chose it.
func notOurs(id string) error {
	return backend.NotFound.Errorf("%.200q is none that a call of this socket made", id)
}

// managersForm is the form of an id or a handle that the manager may have made.
var managersForm = regexp.MustCompile(`(^|/)(pvc|snapshot)-[^/]+$`)

// checkRemovable reports whether a delete call has something to do: its id is that of what a call made. An id that is
// none at all exists nowhere, which is a success. That of a volume or snapshot of the manager is an error.
func checkRemovable(id string, isNamed bool) (may bool, err error) {
	switch {
	case isNamed:
		return true, nil
	case managersForm.MatchString(id):
		return false, precondition("%.200q is none that a call of this socket made: delete its claim, or its VolumeSnapshot", id)
	default:
		return false, nil
	}
}
