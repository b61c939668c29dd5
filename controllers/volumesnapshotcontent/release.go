package volumesnapshotcontent

import (
	"context"
	"errors"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/sharedread"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// releaser deletes snapshots, and lets contents go.
type releaser struct {
	client client.Client
	// contents lists all contents, live: many snapshots may be deleted at once.
	contents *sharedread.Reads[struct{}, []snapshotv1.VolumeSnapshotContent]
	targets  targets
	windows  windows
	report   *reporter
}

func sharedContents(live client.Reader) *sharedread.Reads[struct{}, []snapshotv1.VolumeSnapshotContent] {
	return sharedread.New(func(ctx context.Context, _ struct{}) ([]snapshotv1.VolumeSnapshotContent, error) {
		contents := &snapshotv1.VolumeSnapshotContentList{}
		err := live.List(ctx, contents)
		return contents.Items, wrap.Error(err, "listing the VolumeSnapshotContents")
	}).Paced()
}

// release deletes the snapshot of a deleted content, or has it kept, as its policy says, and lets the content go.
// The policy and the handle are those of a live read in the same pass.
func (r *releaser) release(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) (ctrl.Result, error) {
	handle, err := r.handleOf(ctx, content)
	if err != nil {
		return r.report.Unreleased(servable(content), err)
	}
	if handle != "" {
		settle := r.retain
		if content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete {
			settle = r.remove
		}
		if err := settle(ctx, content, handle); err != nil {
			return r.report.Unreleased(servable(content), err)
		}
	}
	return ctrl.Result{}, servable(content).Unprotect(ctx, r.client)
}

// handleOf returns the handle of a deleted content's snapshot; "" for none. One that a person named may not be recorded
// yet: then the storage says whether it is there. One that was deleted is not looked for again: it may be another by now.
// That of a group's member is deleted with its group, and counts as none here.
func (r *releaser) handleOf(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) (string, error) {
	if snapshots.IsContentInGroup(content) {
		return "", nil
	}
	named := content.Spec.Source.SnapshotHandle
	if handle := recorded(content); handle != "" || named == nil || isCleared(content) {
		return handle, nil
	}
	of, err := r.targets.find(ctx, content)
	var found *backend.Snapshot
	if err == nil {
		found, err = of.FindSnapshot(ctx, *named)
	}
	switch {
	case err == nil && found.Group != "":
		return "", nil
	case err == nil:
		return *named, nil
	case errors.Is(err, backend.NotFound) || errors.Is(err, backend.Conflict) || errors.Is(err, backend.Invalid) && !errors.Is(err, errSeveral):
		// No StorageBackend has such a snapshot.
		return "", nil
	}
	return "", err
}

// retain has the storage record that a snapshot is kept. Once the content is gone, nothing else distinguishes the
// snapshot from an orphan.
func (r *releaser) retain(ctx context.Context, content *snapshotv1.VolumeSnapshotContent, handle string) error {
	if !backend.IsOurs(content.Spec.Driver) {
		return nil
	}
	of, err := r.targets.find(ctx, content)
	if err == nil {
		err = backend.RetainSnapshot(ctx, of.opened, handle)
	}
	switch kind := backend.KindOf(err); {
	case kind == backend.NotFound || kind == backend.Conflict || kind == backend.Invalid || errors.Is(err, errGone):
		// There is nothing of ours that an audit could find.
		return nil
	case err != nil && !backend.Unfinished(err):
		return fmt.Errorf("the content is kept until its storage bears a note that the snapshot is to be: %w", err)
	}
	return err
}

// remove deletes a snapshot, unless another content has it, or gets it for the undelete window. The handle goes from the
// status before the finalizer does: after a crash in between nothing is deleted twice.
func (r *releaser) remove(ctx context.Context, content *snapshotv1.VolumeSnapshotContent, handle string) error {
	all, err := r.contents.Get(ctx, struct{}{})
	if err != nil {
		return err
	}
	kept := r.isKept(content, handle, all)
	if !kept {
		if kept, err = r.windows.begin(ctx, content, handle, all); err != nil {
			return err
		}
	}
	if !kept {
		if err := r.delete(ctx, content, handle); err != nil {
			return err
		}
	}
	return r.clear(ctx, content)
}

// isKept reports whether another content has the same snapshot.
func (r *releaser) isKept(content *snapshotv1.VolumeSnapshotContent, handle string, all []snapshotv1.VolumeSnapshotContent) bool {
	for i := range all {
		if other := &all[i]; other.UID != content.UID && keeps(other, content.Spec.Driver, handle) {
			r.report.Kept(servable(content), other.Name)
			return true
		}
	}
	return false
}

// delete records that the deletion begins, and deletes the snapshot. One that is half deleted is never given away.
func (r *releaser) delete(ctx context.Context, content *snapshotv1.VolumeSnapshotContent, handle string) error {
	of, err := r.targets.find(ctx, content)
	if err != nil {
		return err
	}
	if !isBeingRemoved(content) {
		before := content.DeepCopy()
		metav1.SetMetaDataAnnotation(&content.ObjectMeta, snapshots.Removing, "yes")
		if err := r.client.Patch(ctx, content, patch.Fenced(before)); err != nil {
			return wrap.Error(err, "recording the deletion for VolumeSnapshotContent %s", content.Name)
		}
	}
	if err := of.DeleteSnapshot(ctx, handle); err != nil {
		return err
	}
	r.report.Deleted(servable(content))
	return nil
}

// clear removes what the status says of a snapshot that is gone. A status remains: see isCleared.
func (r *releaser) clear(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) error {
	before := content.DeepCopy()
	if content.Status == nil {
		content.Status = &snapshotv1.VolumeSnapshotContentStatus{}
	}
	content.Status.SnapshotHandle, content.Status.ReadyToUse = nil, nil
	content.Status.CreationTime, content.Status.RestoreSize = nil, nil
	return wrap.Error(r.client.Status().Patch(ctx, content, patch.Fenced(before)), "clearing the status of VolumeSnapshotContent %s", content.Name)
}
