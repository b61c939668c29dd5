package engine

import (
	"context"
	"time"

	"github.com/stowage-dev/stowage/internal/gcemock/fault"
	"github.com/stowage-dev/stowage/internal/gcemock/hotplug"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
)

// Open opens what a folder holds, and goes on with the operations that were under way. Jobs make an
// empty job of each method that changes something.
func Open(ctx context.Context, options Options, jobs map[string]func() Job) (*Engine, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Attacher == nil {
		options.Attacher = hotplug.None{}
	}
	opened, err := state.Open(options.Folder, options.Now())
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	s := &Engine{
		Options: options, Store: opened, Contents: state.Contents{Folder: options.Folder},
		Faults: fault.NewSet(), Jobs: jobs, waiters: newWaiters(), ctx: ctx, stop: stop,
	}
	s.Faults.SetLatency(fault.Latency{Operation: options.Latency})
	s.restoreDevices(ctx)
	s.resume()
	return s, nil
}
