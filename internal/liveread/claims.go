package liveread

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/wrap"
)

const (
	// maxGone bounds the claims that are remembered as gone.
	maxGone = 4096
	// goneFor is how long they are: long enough for the passes that remove a volume. Only a cluster that is restored from a
	// backup of etcd has such a claim again.
	goneFor = time.Minute
)

// Claims reads the claims that volumes refer to. A claim that is gone isn't read again for a minute: it never comes back, and
// another claim of its name has another UID. Claims may be called concurrently.
type Claims struct {
	live client.Reader
	gone *expiring.LRUExpireCache
}

// goneClaim is a reference. Users can write one, with the UID of a claim of another name.
type goneClaim struct {
	types.NamespacedName
	uid types.UID
}

func newClaims(live client.Reader) *Claims {
	return &Claims{live: live, gone: expiring.NewLRUExpireCache(maxGone)}
}

// follow remembers the claims whose deletion a cache's watch shows, so that these aren't read at all. A claim that a list doesn't
// have any more is read: a list may be older than the claim.
func (c *Claims) follow(ctx context.Context, cached cache) error {
	claims, err := cached.GetInformer(ctx, &corev1.PersistentVolumeClaim{})
	if err != nil {
		return fmt.Errorf("following claims: %w", err)
	}
	_, err = claims.AddEventHandlerWithOptions(toolscache.ResourceEventHandlerFuncs{DeleteFunc: c.deleted}, toolscache.HandlerOptions{})
	return wrap.Error(err, "following claims")
}

// deleted gets a claim from the watch, and a DeletedFinalStateUnknown from a list.
func (c *Claims) deleted(object any) {
	if claim, isSeen := object.(*corev1.PersistentVolumeClaim); isSeen {
		c.gone.Add(goneClaim{client.ObjectKeyFromObject(claim), claim.UID}, nil, goneFor)
	}
}

// Of returns the claim that a reference with a UID means, or nil if it is gone. Whatever else has its name is another claim.
func (c *Claims) Of(ctx context.Context, ref *corev1.ObjectReference) (*corev1.PersistentVolumeClaim, error) {
	key := goneClaim{types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, ref.UID}
	if _, isGone := c.gone.Get(key); isGone {
		return nil, nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	err := c.live.Get(ctx, key.NamespacedName, claim)
	switch {
	case err == nil && claim.UID == ref.UID:
		return claim, nil
	case client.IgnoreNotFound(err) != nil:
		return nil, wrap.Error(err, "reading claim %s", key.NamespacedName)
	}
	c.gone.Add(key, nil, goneFor)
	return nil, nil
}
