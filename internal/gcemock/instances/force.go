package instances

import (
	"context"
	"errors"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/hotplug"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// isForced reports whether a request takes the disk from the instances that have it.
func isForced(r *wire.Request, requested *compute.AttachedDisk) bool {
	return r.URL.Query().Get("forceAttach") == "true" || requested.ForceAttach
}

// Takes implements engine.Taker: a forced attachment changes the instances that have the disk.
func (j *attachDisk) Takes(s *engine.Engine) (instances []string) {
	if !j.Asked.Forced {
		return nil
	}
	for _, other := range s.AttachmentsOf(j.Asked.Disk) {
		instances = append(instances, other.Instance)
	}
	return instances
}

// losers are the paths of the attachments that a forced one takes the disk from: all that it can't
// be beside.
func losers(s *engine.Engine, requested state.Attachment, operation string) (paths []string) {
	if !requested.Forced {
		return nil
	}
	accessMode := s.Disks.Rows[requested.Disk].AccessMode
	for _, other := range othersOf(s, requested.Disk, operation) {
		if !canShare(accessMode, requested.Mode, other.Mode) {
			paths = append(paths, other.Path())
		}
	}
	return paths
}

// dropLosers removes the attachments that the one at a path takes the disk from.
func dropLosers(s *engine.Engine, path string) {
	row, _ := s.Attachments.Get(path)
	for _, loser := range row.From {
		dropAttachment(s, loser)
	}
}

// takenDevices are those of the attachments that a forced one takes the disk from.
type takenDevices struct {
	// Shown devices are on instances that run; on others a start that failed may have left some.
	all, shown []hotplug.Device
}

// takenBy are the devices that the attachment at a path takes away. The store is locked.
func takenBy(s *engine.Engine, path string) (taken takenDevices) {
	row, _ := s.Attachments.Get(path)
	for _, loser := range row.From {
		other, found := s.Attachments.Get(loser)
		if !found {
			continue
		}
		taken.all = append(taken.all, s.Device(other))
		if s.IsPowered(other.Instance) {
			taken.shown = append(taken.shown, s.Device(other))
		}
	}
	return taken
}

// unplug takes all of the devices away, or none.
func (t takenDevices) unplug(ctx context.Context, attacher hotplug.Attacher) error {
	for _, device := range t.all {
		if err := attacher.Detach(ctx, device); err != nil {
			return errors.Join(err, t.plugAgain(ctx, attacher))
		}
	}
	return nil
}

// plugAgain makes them appear again after an error, as the operation is to change nothing then.
func (t takenDevices) plugAgain(ctx context.Context, attacher hotplug.Attacher) (failed error) {
	for _, device := range t.shown {
		failed = errors.Join(failed, attacher.Attach(ctx, device))
	}
	return failed
}
