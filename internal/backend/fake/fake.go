// Package fake is a backend in memory, for tests: it can be told to fail and to
// keep its callers waiting, and tells what it was called for.
//
// It stands in for any kind of storage, passes the contract suite, and is never
// part of a program.
package fake

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/volume"
)

// Kind serves StorageBackend objects of a type with one Backend in memory.
type Kind struct {
	// For is the type of StorageBackend that is served.
	For stowagev1alpha1.BackendType
	// Backend serves all of them.
	Backend *Backend
}

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
	taken bool
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

// Provision keeps the request, or fails as FailNext said.
func (b *Backend) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	if err := b.enter(ctx, "Provision "+request.ID); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	if err := b.nextFailure(); err != nil {
		return nil, err
	}
	if volume.IsDiskPath(request.ID) {
		return nil, backend.Conflict.Errorf("%q is no id of a volume", request.ID)
	}
	kept, exists := b.volumes[request.ID]
	if exists && kept.Claim != request.Claim {
		return nil, backend.Conflict.Errorf("volume %s belongs to claim %s/%s", request.ID, kept.Claim.Namespace, kept.Claim.Name)
	}
	if !exists && request.Source != nil {
		source, there := b.volumes[request.Source.ID]
		if !there {
			return nil, backend.Invalid.Errorf("there is no volume %q to copy", request.Source.ID)
		}
		if source.Claim != request.Source.Claim {
			return nil, backend.Conflict.Errorf("volume %q is another claim's", request.Source.ID)
		}
	}
	if !exists {
		b.volumes[request.ID] = request
		kept = request
	}
	return &backend.Volume{Handle: kept.ID, Capacity: kept.Capacity, FSType: kept.FSType}, nil
}

// Delete forgets the volume, once it isn't attached, or fails as FailNext said.
func (b *Backend) Delete(ctx context.Context, id string) error {
	if err := b.enter(ctx, "Delete "+id); err != nil {
		return err
	}
	defer b.mu.Unlock()
	if err := b.nextFailure(); err != nil {
		return err
	}
	if len(b.attached[id]) > 0 {
		return backend.InProgress.Errorf("volume %s is attached, and is removed once it isn't", id)
	}
	delete(b.volumes, id)
	delete(b.retained, id)
	return nil
}

// Hold keeps every call that changes something, and ObserveNode, from going on until
// release is called, or its context ends: then its outcome isn't known, and it had none.
func (b *Backend) Hold() (release func()) { return b.HoldOnly("") }

// HoldOnly is Hold for those calls that begin with a word, such as Detach.
func (b *Backend) HoldOnly(word string) (release func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	gate := make(chan struct{})
	b.gate, b.gated = gate, word
	return sync.OnceFunc(func() { close(gate) })
}

// TakeAtOnce makes calls that are held, or take long, be taken before that: what is left of
// them is to wait.
func (b *Backend) TakeAtOnce() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken = true
}

// SetLatency makes every call that Hold would hold take this long.
func (b *Backend) SetLatency(latency time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.latency = latency
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

// Has tells whether the backend holds a volume.
func (b *Backend) Has(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, exists := b.volumes[id]
	return exists
}

// Len is how many volumes the backend holds.
func (b *Backend) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.volumes)
}

// enter notes a call, waits while calls are held, and locks.
func (b *Backend) enter(ctx context.Context, call string) error {
	b.mu.Lock()
	b.calls = append(b.calls, call)
	gate, latency, taken := b.gate, b.latency, b.taken
	if !strings.HasPrefix(call, b.gated) {
		gate = nil
	}
	if gate == nil && latency == 0 {
		return nil
	}
	b.mu.Unlock()
	if taken {
		backend.Taken(ctx)
	}
	if err := wait(ctx, gate, latency); err != nil {
		return err
	}
	b.mu.Lock()
	return nil
}

// wait waits for a gate to open, where there is one, and for as long as is said.
func wait(ctx context.Context, gate <-chan struct{}, latency time.Duration) error {
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if latency == 0 {
		return nil
	}
	timer := time.NewTimer(latency)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *Backend) nextFailure() error {
	if len(b.failures) == 0 {
		return nil
	}
	next := b.failures[0]
	b.failures = b.failures[1:]
	return next
}
