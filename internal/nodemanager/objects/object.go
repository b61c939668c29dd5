package objects

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/nodemanager/content"
)

// readTimeout is how long one read may take: an API server that hangs doesn't hold up the pods
// that need nothing new.
const readTimeout = 10 * time.Second

type kind string

const (
	configMap kind = "configMap"
	secret    kind = "secret"
)

func (k kind) newObject() client.Object {
	if k == secret {
		return &corev1.Secret{}
	}
	return &corev1.ConfigMap{}
}

func (k kind) newList() client.ObjectList {
	if k == secret {
		return &corev1.SecretList{}
	}
	return &corev1.ConfigMapList{}
}

type key struct {
	kind            kind
	namespace, name string
}

func (k key) String() string {
	return fmt.Sprintf("%s %s/%s", k.kind, k.namespace, k.name)
}

// shared is what all objects of a Reader have in common. Its lock guards the objects, too.
type shared struct {
	mu sync.Mutex
	// live reads from the API server itself, and watches.
	live client.WithWatch
	// changed is called with each pod whose objects changed.
	changed func(types.UID)
	// ended: nothing is watched any more.
	ended   bool
	watches sync.WaitGroup
}

// object is one that pods project.
type object struct {
	key
	*shared
	// known is its last known state; nil: it doesn't exist, or isn't known.
	known client.Object
	// version is the resourceVersion of that state.
	version string
	// pods are those that project it, and whether it was read for them.
	pods map[types.UID]bool
	// stop ends its watch; nil: it isn't watched.
	stop context.CancelFunc
	// isWatched: its watch has begun.
	isWatched bool
}

// update records the state of the object at a version, unless a newer one is known. A watch may be
// behind a read, and the other way round. It reports whether the known state changed.
func (o *object) update(state client.Object, version string) bool {
	if o.isNewerThan(version) {
		return false
	}
	before := o.known
	o.known, o.version = state, version
	if state != nil {
		state.SetManagedFields(nil) // many bytes, and no volume projects them
	}
	if isImmutable(state) {
		o.unwatch()
	}
	return !isSame(before, state)
}

// notify calls changed with the pods that project the object, except one.
func (o *object) notify(except types.UID) {
	for pod := range o.pods {
		if pod != except {
			o.changed(pod)
		}
	}
}

func (o *object) unwatch() {
	if o.stop != nil {
		o.stop()
		o.stop, o.isWatched = nil, false
	}
}

func (o *object) isNewerThan(version string) bool {
	order, err := resourceversion.CompareResourceVersion(o.version, version)
	return err == nil && order > 0
}

func isSame(before, now client.Object) bool {
	if before == nil || now == nil {
		return before == now
	}
	return before.GetUID() == now.GetUID() && before.GetResourceVersion() == now.GetResourceVersion()
}

func isImmutable(state client.Object) bool {
	switch state := state.(type) {
	case *corev1.ConfigMap:
		return ptr.Deref(state.Immutable, false)
	case *corev1.Secret:
		return ptr.Deref(state.Immutable, false)
	default:
		return false
	}
}

// unreadable is the error of a read that the API server forbids. Its authorizer learns a moment
// later than the node which pods are on the node.
func unreadable(what string, forbidden error) error {
	return fmt.Errorf("%s is %w, or isn't readable from this node yet: %w", what, content.ErrMissing, forbidden)
}
