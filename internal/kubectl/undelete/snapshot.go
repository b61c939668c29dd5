package undelete

import (
	"context"
	"errors"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/facts"
	"github.com/stowage-dev/stowage/internal/snapshots"
)

// SnapshotResult is what undelete did for a snapshot.
type SnapshotResult struct {
	// VolumeSnapshot that has the snapshot, as NAMESPACE/NAME.
	VolumeSnapshot string `json:"volumeSnapshot"`
	Content        string `json:"content"`
	DryRun         bool   `json:"dryRun,omitempty"`
}

// runSnapshot creates the VolumeSnapshot that a content was for, and waits until it is ready. The same command continues
// after an interruption.
func (u *undeletion) runSnapshot(ctx context.Context, name string) (*SnapshotResult, error) {
	if u.to != nil {
		return nil, errors.New("--to is for volumes: a VolumeSnapshot comes back under the name and in the namespace that it had")
	}
	content := &snapshotv1.VolumeSnapshotContent{}
	if err := u.client.Get(ctx, client.ObjectKey{Name: name}, content); err != nil {
		return nil, explained(err, "reading VolumeSnapshotContent %s (kubectl stowage list --retained has the names)", name)
	}
	wanted := snapshotOf(content)
	key, result := client.ObjectKeyFromObject(wanted), &SnapshotResult{VolumeSnapshot: facts.SnapshotOf(content), Content: name, DryRun: u.dryRun}
	there := &snapshotv1.VolumeSnapshot{}
	err := u.client.Get(ctx, key, there)
	switch {
	case err == nil && !isSnapshotOf(there, content):
		return nil, fmt.Errorf("VolumeSnapshot %s exists, and is another: delete it first, and wait until it is gone", key)
	case client.IgnoreNotFound(err) != nil:
		return nil, explained(err, "reading VolumeSnapshot %s", key)
	case apierrors.IsNotFound(err):
		if err := refuseSnapshot(content); err != nil {
			return nil, err
		}
		if err := u.client.Create(ctx, wanted, u.creation()...); err != nil {
			return nil, explained(err, "creating VolumeSnapshot %s", key)
		}
	}
	if u.dryRun {
		return result, nil
	}
	return result, u.awaitReady(ctx, key, name)
}

// snapshotOf is the VolumeSnapshot that gets the snapshot of a content: only one of this name may have it.
func snapshotOf(content *snapshotv1.VolumeSnapshotContent) *snapshotv1.VolumeSnapshot {
	made := &snapshotv1.VolumeSnapshot{Spec: snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: &content.Name}}}
	made.Namespace, made.Name = content.Spec.VolumeSnapshotRef.Namespace, content.Spec.VolumeSnapshotRef.Name
	return made
}

// isSnapshotOf reports whether a VolumeSnapshot asks for a content, and stays.
func isSnapshotOf(snapshot *snapshotv1.VolumeSnapshot, content *snapshotv1.VolumeSnapshotContent) bool {
	of := snapshot.Spec.Source.VolumeSnapshotContentName
	return of != nil && *of == content.Name && snapshot.DeletionTimestamp.IsZero()
}

// refuseSnapshot returns why no VolumeSnapshot can have a content; nil if one can.
func refuseSnapshot(content *snapshotv1.VolumeSnapshotContent) error {
	_, in := content.Labels[stowagev1alpha1.UndeletableLabel]
	switch {
	case !content.DeletionTimestamp.IsZero():
		return fmt.Errorf("VolumeSnapshotContent %s is being deleted, and its snapshot with it, which can't be undone", content.Name)
	case !in:
		return fmt.Errorf("VolumeSnapshotContent %s isn't in an undelete window: kubectl stowage list --retained has the names of those that are", content.Name)
	default:
		return nil
	}
}

func (u *undeletion) creation() []client.CreateOption {
	options := []client.CreateOption{client.FieldOwner(fieldOwner)}
	if u.dryRun {
		options = append(options, client.DryRunAll)
	}
	return options
}

// awaitReady waits until a VolumeSnapshot is bound to a content, and ready.
func (u *undeletion) awaitReady(ctx context.Context, key client.ObjectKey, content string) error {
	snapshot := &snapshotv1.VolumeSnapshot{}
	err := wait.PollUntilContextTimeout(ctx, pollInterval, u.timeout, true, func(ctx context.Context) (bool, error) {
		err := u.client.Get(ctx, key, snapshot)
		return err == nil && snapshots.BoundContent(snapshot) == content && snapshots.IsReady(snapshot), err
	})
	if err != nil {
		return fmt.Errorf("VolumeSnapshot %s isn't ready yet (%w): see kubectl describe volumesnapshot %s -n %s, then run the command again",
			key, err, key.Name, key.Namespace)
	}
	return nil
}
