package csi

import (
	"context"
	"fmt"
	"sync"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/foreign"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/record"
)

// sweepInterval is how often Watch looks for staged volumes that no pod has.
const sweepInterval = time.Minute

var _ volumes.Watcher = Plugin{}

// Watch implements volumes.Watcher, but wakes nothing. Until the context ends, it unstages
// volumes that something other than a pod was using when their last pod went.
func (p Plugin) Watch(ctx context.Context, _ volumes.Wake) {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		p.caller.sweep(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// sweep has each volume unstaged that no pod has. Drivers refuse what is in use. A volume whose
// server hangs delays no other.
func (c *Caller) sweep(ctx context.Context) {
	if err := c.adoptAll(); err != nil {
		logf.FromContext(ctx).Error(err, "taking over what an agent of an earlier version mounted")
	}
	staged, err := c.AllStaged()
	if err != nil {
		logf.FromContext(ctx).Error(err, "looking for volumes that are staged and unused")
	}
	var running sync.WaitGroup
	for _, path := range staged {
		running.Go(func() {
			if err := c.sweepOne(ctx, path); err != nil && ctx.Err() == nil {
				logf.FromContext(ctx).Error(err, "unstaging a volume that no pod has", "record", path)
			}
		})
	}
	running.Wait()
}

func (c *Caller) sweepOne(ctx context.Context, path string) error {
	data, err := volumes.ReadRecord[record.Data](path)
	if err != nil {
		return fmt.Errorf("reading which volume is staged: %w", err)
	}
	if data == nil {
		return nil
	}
	if foreign.Is(data.Driver) {
		return c.foreign.UnstageUnused(ctx, *data)
	}
	_, release, err := c.begin(ctx, *data)
	if err != nil {
		return err
	}
	defer release()
	return c.unstage(ctx, *data)
}
