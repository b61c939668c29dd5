// Package fake is a backend in memory, for tests: it can be told to fail and to
// keep its callers waiting, and tells what it was called for.
//
// It stands in for any kind of storage, passes the contract suite, and is never
// part of a program.
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

// Kind serves StorageBackend objects of a type with one Backend in memory.
type Kind struct {
	// For is the type of StorageBackend that is served.
	For stowagev1alpha1.BackendType
	// Backend serves all of them.
	Backend *Backend
}

// attachments are the machines that a volume is attached to, and which of them can't
// write.
type attachments map[machine]bool

// machine is what a volume is attached to: a node's machine, which a node that has no
// provider's id is found by the name of.
type machine string

// Type is the type that the fake stands in for.
func (k Kind) Type() stowagev1alpha1.BackendType { return k.For }

// Open returns the one backend.
func (k Kind) Open(*stowagev1alpha1.StorageBackend) (backend.Backend, error) { return k.Backend, nil }

// Backend keeps volumes in memory.
type Backend struct {
	mu      sync.Mutex
	volumes map[string]backend.Request
	// unrecorded are what LoseRecord left.
	unrecorded []backend.Held
	// retained are the ids that Retain was called for.
	retained map[string]bool
	// attached are the machines that volumes are attached to, machines what became of
	// those that SetMachine was told of.
	attached map[string]attachments
	// existing are the disks that somebody else made, and the machines that have them.
	existing map[string]attachments
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
	// gate is closed when calls may go on; nil while they aren't held.
	gate chan struct{}
	// gated is what the calls begin with that are held; empty: all are.
	gated string
	// taken says that calls are taken before they wait.
	accepted bool
	// latency is how long every call takes.
	latency time.Duration
	calls   []string
}

var _ backend.Prober = (*Backend)(nil)

// New makes an empty backend.
func New() *Backend {
	return &Backend{
		volumes: map[string]backend.Request{}, retained: map[string]bool{},
		attached: map[string]attachments{}, machines: map[machine]backend.Machine{}, unlisted: map[string]bool{},
	}
}

// Capabilities are all that there are.
func (b *Backend) Capabilities() backend.Capabilities {
	b.mu.Lock()
	defer b.mu.Unlock()
	return backend.Capabilities{
		Advisory: b.advisory,
		Clones:   true,
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

// Calls are all calls that Hold would hold and that began, in their order.
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

// FailNothing takes back what FailNext said, as far as it is still to come.
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

func (b *Backend) nextFailure() error {
	if len(b.failures) == 0 {
		return nil
	}
	next := b.failures[0]
	b.failures = b.failures[1:]
	return next
}
