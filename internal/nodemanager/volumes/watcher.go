package volumes

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
)

// ErrOverLimit means: a volume, which stays as it is, is over its limit.
var ErrOverLimit = errors.New("the volume has more than it may")

// Wake reconciles a pod again. It never waits.
type Wake func(pod types.UID)

// Watcher is a Plugin that detects changes of published volumes itself.
type Watcher interface {
	Plugin
	// Watch wakes the pods of changed volumes until the context ends.
	Watch(ctx context.Context, wake Wake)
}
