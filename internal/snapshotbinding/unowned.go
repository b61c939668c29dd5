package snapshotbinding

import (
	"context"
	"errors"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// endings is how often a content is ended again that others write just then: the reconciler of contents begins with it.
const endings = 10

// errDeleted is that of an object that was deleted while its content was made.
var errDeleted = errors.New("it was deleted just then")

// EndUnowned ends a content that was just made, and lets claims go, if the content's object was deleted since it was read. Another
// manager that believes that it leads, too, may have found no content, and let the object go. Nothing else would ever delete the
// snapshot. The error is a Conflict then.
func (c *Claims) EndUnowned(ctx context.Context, owner client.Object, content Content, claims ...types.NamespacedName) error {
	key, now := client.ObjectKeyFromObject(owner), owner.DeepCopyObject().(client.Object)
	err := c.live.Get(ctx, key, now)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading %T %s again: %w", owner, key, err)
	case err == nil && now.GetUID() == owner.GetUID() && now.GetDeletionTimestamp().IsZero():
		return nil
	}
	// No later pass finds it by an object that is gone: so this one repeats what collides with other writers.
	err = content.end(ctx, c.client)
	for range endings {
		if !apierrors.IsConflict(err) {
			break
		}
		if err = c.live.Get(ctx, client.ObjectKeyFromObject(content), content.Object); err == nil {
			err = content.end(ctx, c.client)
		}
	}
	err = client.IgnoreNotFound(err)
	for _, claim := range claims {
		err = errors.Join(err, c.Release(ctx, owner.GetUID(), claim))
	}
	if err != nil {
		return err
	}
	return apierrors.NewConflict(snapshotv1.Resource("snapshots"), owner.GetName(), errDeleted)
}
