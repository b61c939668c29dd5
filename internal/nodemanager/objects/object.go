package objects

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kind is what an object is.
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

// key is by what an object is found.
type key struct {
	kind            kind
	namespace, name string
}

func (k key) String() string {
	return fmt.Sprintf("%s %s/%s", k.kind, k.namespace, k.name)
}

// object is one that pods show. The reader's lock guards it.
type object struct {
	key
	reader *Reader
	// seen is what is known of it; nil: it doesn't exist, or nothing is known.
	seen client.Object
	// version is of when it was so.
	version string
	// pods are those that show it, and whether it was read for them.
	pods map[types.UID]bool
	// stop ends its watch; nil: it isn't watched.
	stop context.CancelFunc
}

// learn notes how the object was at a version, unless something newer is known: a
// watch may be behind what was read, and the other way round. It says whether that
// changed what is known.
func (o *object) learn(seen client.Object, version string) bool {
	if o.isNewerThan(version) {
		return false
	}
	before := o.seen
	o.seen, o.version = seen, version
	if seen != nil {
		seen.SetManagedFields(nil) // many bytes, and nobody shows them
	}
	if isImmutable(seen) {
		o.unwatch()
	}
	return !isSame(before, seen)
}

// tell tells of the pods that show the object, but one.
func (o *object) tell(but types.UID) {
	for pod := range o.pods {
		if pod != but {
			o.reader.changed(pod)
		}
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

// isImmutable says whether an object stays as it is until it is deleted.
func isImmutable(seen client.Object) bool {
	switch seen := seen.(type) {
	case *corev1.ConfigMap:
		return ptr.Deref(seen.Immutable, false)
	case *corev1.Secret:
		return ptr.Deref(seen.Immutable, false)
	default:
		return false
	}
}
