package foreign

import (
	"context"
	"os"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/record"
	"github.com/stowage-dev/stowage/internal/volume"
)

// Disks are the volumes of one of the agent's own drivers that are attached first.
type Disks interface {
	Serves(ctx context.Context, volume *corev1.PersistentVolume) bool
	Drivers() []string
	InUse() ([]corev1.UniqueVolumeName, error)
	Watch(ctx context.Context, changed func()) error
}

// Attachable are the volumes of all drivers that a node has only while they are attached to it: the
// agent's own disks, and those of other projects' drivers whose CSIDriver says so.
type Attachable struct {
	Disks
	caller *Caller
	mu     sync.Mutex
	seen   map[string]bool
}

// NewAttachable adds to the agent's own disks the volumes of other projects' drivers.
func NewAttachable(own Disks, caller *Caller) *Attachable {
	return &Attachable{Disks: own, caller: caller, seen: map[string]bool{}}
}

// Serves reports whether a volume must be attached first.
func (a *Attachable) Serves(ctx context.Context, object *corev1.PersistentVolume) bool {
	if object == nil || object.Spec.CSI == nil || !Is(object.Spec.CSI.Driver) {
		return a.Disks.Serves(ctx, object)
	}
	driver := object.Spec.CSI.Driver
	a.mu.Lock()
	a.seen[driver] = true
	a.mu.Unlock()
	return a.caller.Attaches(ctx, driver)
}

// Drivers returns the drivers whose entries in volumesInUse are the agent's: also those of which
// something is staged, and those of which a pod wanted something.
func (a *Attachable) Drivers() []string {
	names := a.Disks.Drivers()
	entries, _ := os.ReadDir(a.caller.Folders.Plugins)
	for _, entry := range entries {
		if Is(entry.Name()) && entry.Name() != record.DeviceFolder {
			names = append(names, entry.Name())
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for driver := range a.seen {
		names = append(names, driver)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// InUse returns the attached volumes that are staged, or may be.
func (a *Attachable) InUse() ([]corev1.UniqueVolumeName, error) {
	names, err := a.Disks.InUse()
	if err != nil {
		return nil, err
	}
	records, err := a.caller.Folders.AllStaged()
	if err != nil {
		return nil, err
	}
	attaches := map[string]bool{}
	for _, path := range records {
		data, err := volumes.ReadRecord[record.Data](path)
		if err != nil || data == nil || !Is(data.Driver) {
			// A record that can't be read must not keep other disks from being reported. The pods
			// that have the volume want it.
			continue
		}
		if _, known := attaches[data.Driver]; !known {
			attaches[data.Driver] = a.caller.Attaches(context.Background(), data.Driver)
		}
		if attaches[data.Driver] {
			names = append(names, volume.UniqueName(data.Driver, data.Handle))
		}
	}
	return names, nil
}
