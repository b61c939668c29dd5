package volumes

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
)

// ErrOverLimit says that a volume, which stays as it is, has more than it may.
var ErrOverLimit = errors.New("the volume has more than it may")

// Tell has a pod's volumes looked at again. It never waits.
type Tell func(pod types.UID)

// Watcher is a Plugin that notices by itself when what it says of a published volume
// changes.
type Watcher interface {
	Plugin
	// Watch tells of such changes until the context ends.
	Watch(ctx context.Context, tell Tell)
}
