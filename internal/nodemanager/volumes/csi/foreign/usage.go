package foreign

import (
	"context"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/record"
)

// Usage has the driver of a pod's volume measure it. It waits for no other call: one that hangs doesn't
// keep the numbers of a mounted volume away.
func (c *Caller) Usage(ctx context.Context, spec volumes.Spec, at record.Target) (volumes.Usage, error) {
	data := c.dataOf(spec)
	driver, err := c.find(data.Driver)
	if err != nil {
		return volumes.Usage{}, err
	}
	return driver.Usage(ctx, data.Handle, at.Path)
}
