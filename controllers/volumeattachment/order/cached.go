package order

import (
	"context"
	"errors"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/wake"
)

// cached returns the attachments of a candidate's storage from the cache, and whether they prove as
// much as a live list of all attachments at the time when the candidate was prepared. A live list grows
// with the cluster. They do where this process prepared the candidate a moment ago, and the cache shows
// it so: it applies the changes of one kind of object in the order of the API server. One that shows a
// write shows all earlier changes of attachments, too.
//
// The moment bounds what a manager that was paused could have missed. A repeat gets no such proof, and a
// manager that has just started has none. Attachments of Google's driver are found by their disk, in
// the live list alone.
func (o Order) cached(ctx context.Context, c Candidate, names []string) (found liveread.Attachments, proven bool) {
	prepared, recent := o.prepared.Take(c.Attachment)
	if !recent || !o.ordered || c.isInTreeDisk() {
		return found, false
	}
	ctx, cancel := context.WithTimeout(ctx, attachintent.Moment)
	defer cancel()
	all, err := o.listed(ctx, c, names, prepared)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("the cache proves nothing about the attachments of a volume", "volume", c.PersistentVolume.Name, "why", err.Error())
		return found, false
	}
	return liveread.GroupAttachments(all), o.prepared.Prove(prepared)
}

// listed lists the attachments of a candidate's storage once the cache shows its preparation: the read
// of the candidate waits until the cache shows this process's writes to it.
func (o Order) listed(ctx context.Context, c Candidate, names []string, prepared attachintent.Write) (all []storagev1.VolumeAttachment, err error) {
	shown := &storagev1.VolumeAttachment{}
	if err := o.cache.Get(ctx, client.ObjectKeyFromObject(c.Attachment), shown, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("reading attachment %s: %w", c.Attachment.Name, err)
	}
	if !prepared.ShownBy(shown) {
		return nil, errors.New("it doesn't show how the attachment was prepared")
	}
	fields := []client.MatchingFields{{attachintent.ByHandle: index.HandleOf(c.Volume)[0]}}
	for _, name := range names {
		fields = append(fields, client.MatchingFields{index.AttachmentsByStorage: name})
	}
	for _, field := range fields {
		some := &storagev1.VolumeAttachmentList{}
		if err := o.cache.List(ctx, some, field, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing attachments: %w", err)
		}
		all = append(all, some.Items...)
	}
	return all, nil
}
