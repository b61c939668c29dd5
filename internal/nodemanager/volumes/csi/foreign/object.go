package foreign

import (
	"context"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
)

// objectTimeout bounds the wait for the cache of CSIDriver objects, within a pass over a pod.
const objectTimeout = time.Second

// Attaches reports whether volumes of a driver are attached to nodes. As with a kubelet, they are
// unless its CSIDriver says that they are not. While the object can't be read, a volume waits.
func (c *Caller) Attaches(ctx context.Context, driver string) bool {
	object, err := c.object(ctx, driver)
	return err != nil || object == nil || ptr.Deref(object.Spec.AttachRequired, true)
}

// Republishes reports whether a driver renews what is in its volumes.
func (c *Caller) Republishes(ctx context.Context, driver string) bool {
	if !Is(driver) {
		return false
	}
	object, err := c.object(ctx, driver)
	return err == nil && object != nil && ptr.Deref(object.Spec.RequiresRepublish, false)
}

func (c *Caller) object(ctx context.Context, driver string) (*storagev1.CSIDriver, error) {
	if c.Objects == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, objectTimeout)
	defer cancel()
	return c.Objects.CSIDriver(ctx, driver)
}
