// Package fake is a backend in memory, for tests. It fails and blocks as tests ask, and lists the
// calls that it got.
//
// It replaces any kind of storage, passes the contract suite, and is never part of a program.
package fake

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// Kind serves all StorageBackend objects of a type with one Backend in memory.
type Kind struct {
	// For is the type of StorageBackend that is served.
	For stowagev1alpha1.BackendType
	// Backend serves them.
	Backend *Backend
}

// attachments are the machines that a volume is attached to, true for those that can't write.
type attachments map[machine]bool

// machine is a node's machine: the provider's id or, without one, made of the node's name.
type machine string

// Type is the type that the fake replaces.
func (k Kind) Type() stowagev1alpha1.BackendType { return k.For }

// Open returns the one backend.
func (k Kind) Open(*stowagev1alpha1.StorageBackend) (backend.Backend, error) { return k.Backend, nil }

// Backend keeps volumes in memory.
type Backend struct {
	mu      sync.Mutex
	volumes map[string]backend.Request
	// snapshots are by handle. While uploading, they are not ready.
	snapshots map[string]kept
	uploading bool
	// restoresNone is what SetRestores unset.
	restoresNone bool
	// inPlace is what SetInPlace set.
	inPlace bool
	// unrecorded are what LoseRecord left.
	unrecorded []backend.Held
	// retained are the ids that Retain was called for.
	retained map[string]bool
	// attached are the machines of attached volumes and disks.
	attached map[string]attachments
	// existing are the paths of AddExisting.
	existing map[string]bool
	// machines are the states that SetMachine set.
	machines map[machine]backend.Machine
	// unlisted are the ids that Unlist hid.
	unlisted map[string]bool
	failures []error
	probe    error
	// listing and observing are what Attachments and ObserveNode fail with.
	listing, observing error
	space              backend.Space
	// onNode and advisory are what SetOnNode and SetAdvisory set.
	onNode, advisory bool
	// gate is closed to let held calls continue; nil while none are held.
	gate chan struct{}
	// gated is the prefix of the calls that are held; empty: all are.
	gated string
	// accepted makes calls be accepted before they wait.
	accepted bool
	// latency is how long every call takes.
	latency time.Duration
	calls   []string
}

var _ backend.Prober = (*Backend)(nil)

// New makes an empty backend.
func New() *Backend {
	return &Backend{
		volumes: map[string]backend.Request{}, snapshots: map[string]kept{}, retained: map[string]bool{},
		attached: map[string]attachments{}, existing: map[string]bool{}, machines: map[machine]backend.Machine{}, unlisted: map[string]bool{},
	}
}

// Capabilities are all that there are.
func (b *Backend) Capabilities() backend.Capabilities {
	b.mu.Lock()
	defer b.mu.Unlock()
	return backend.Capabilities{
		Advisory: b.advisory,
		Clones:   true,
		Restores: !b.restoresNone,
		InPlace:  b.inPlace,
		AccessModes: []corev1.PersistentVolumeAccessMode{
			corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod,
		},
		VolumeModes: []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock},
		FSTypes:     []string{"ext4", "xfs"},
	}
}

// Probe returns what SetProbe set.
func (b *Backend) Probe(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.probe
}

// Calls returns all calls that Hold applies to and that began, in order.
func (b *Backend) Calls() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.calls)
}

// FailNext makes the next calls that change something return these errors, one each;
// after them calls succeed again.
func (b *Backend) FailNext(failures ...error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = append(b.failures, failures...)
}

// FailNothing removes the failures of FailNext that are still to come.
func (b *Backend) FailNothing() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = nil
}

// SetProbe makes Probe return this from now on.
func (b *Backend) SetProbe(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probe = err
}
