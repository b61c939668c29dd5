package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/wrap"
)

const (
	// MaxListed is how many of each kind the status names: the limit of the API.
	MaxListed = 100
	// maxNamed is how many an event names.
	maxNamed = 3
)

// findings are the results of an audit.
type findings struct {
	// held are the ids of all that the backend holds, orphans those without a record, lost the
	// PersistentVolumes without storage.
	held    map[string]bool
	orphans []backend.Held
	lost    []string
	// retained is the number of volumes without a record that a person marked to be kept.
	retained int32
	// living maps the UIDs of live claims to the volumes that they are bound to.
	living map[types.UID]string
}

// record writes the findings to the backend's status, with the version of a live read. So of
// two auditors one writes, and the current spec decides what is removed. It returns nil if the
// backend is deleted, or is being deleted.
func (r *Auditor) record(ctx context.Context, audited *stowagev1alpha1.StorageBackend, found findings) (*stowagev1alpha1.StorageBackend, error) {
	object := &stowagev1alpha1.StorageBackend{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(audited), object); err != nil {
		return nil, wrap.Error(client.IgnoreNotFound(err), "reading StorageBackend %s", audited.Name)
	}
	if object.UID != audited.UID || !object.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	before := object.DeepCopy()
	object.Status.Orphans = ptr.To(int32(len(found.orphans)))
	object.Status.LostVolumes = ptr.To(int32(len(found.lost)))
	object.Status.Audit = auditStatus(object, found, metav1.NewTime(r.clock.Now()).Rfc3339Copy())
	if !equality.Semantic.DeepEqual(before.Status, object.Status) {
		err := r.client.Status().Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if err != nil {
			return nil, fmt.Errorf("writing what an audit of StorageBackend %s found: %w", object.Name, err)
		}
	}
	r.failed.Forget(client.ObjectKeyFromObject(object))
	r.measure(object)
	r.tellNews(before, object)
	r.tellRemoved(before, object, found.held)
	return object, nil
}

// auditStatus returns the status of findings. It keeps the time since when something is an
// orphan, so that no restart and no change of leaders shortens it.
func auditStatus(object *stowagev1alpha1.StorageBackend, found findings, now metav1.Time) *stowagev1alpha1.AuditStatus {
	seen := map[backend.Held]metav1.Time{}
	if last := object.Status.Audit; last != nil {
		for _, orphan := range last.Orphans {
			seen[HeldAs(orphan)] = orphan.Since
		}
	}
	status := &stowagev1alpha1.AuditStatus{Time: now, Retained: found.retained, LostVolumes: found.lost[:min(MaxListed, len(found.lost))]}
	for _, held := range found.orphans {
		shown := shownAs(held)
		since, known := seen[shown]
		if !known {
			since = now
		}
		after := object.Spec.Audit.RemoveOrphansAfter
		status.Orphans = append(status.Orphans, stowagev1alpha1.Orphan{
			ID: shown.ID, ClaimNamespace: shown.Claim.Namespace, ClaimName: shown.Claim.Name, ClaimUID: shown.Claim.UID,
			NodeName: held.Node, Since: since,
			Removing: after != nil && now.Sub(since.Time) >= after.Duration && removable(held, found.living),
		})
	}
	slices.SortFunc(status.Orphans, func(a, b stowagev1alpha1.Orphan) int {
		return cmp.Or(a.Since.Compare(b.Since.Time), cmp.Compare(a.ID, b.ID))
	})
	status.Orphans = status.Orphans[:min(MaxListed, len(status.Orphans))]
	return status
}

// shownAs returns what the status shows of a held volume. The claim's name comes from a record
// that others may have written: a name that is too long for a claim is cut.
func shownAs(held backend.Held) backend.Held {
	const longest = 253
	held.Claim.Namespace = message.Cut(held.Claim.Namespace, longest)
	held.Claim.Name = message.Cut(held.Claim.Name, longest)
	held.Claim.UID = types.UID(message.Cut(string(held.Claim.UID), longest))
	return held
}

// removable reports whether an orphan may be removed at all. Its id must be that of a deleted
// claim, or of one that is bound to another volume. A claim that lost its PersistentVolume
// still needs the storage. A person decides about storage on a node without a record. After a
// restore of the cluster, that is everything made since the backup.
func removable(held backend.Held, living map[types.UID]string) bool {
	bound, lives := living[held.Claim.UID]
	return held.Node == "" && provisioned.IsVolumeIDOf(held.ID, held.Claim.UID) && (!lives || bound != "" && bound != held.ID)
}

// HeldAs returns the backend's description of an orphan.
func HeldAs(orphan stowagev1alpha1.Orphan) backend.Held {
	return backend.Held{ID: orphan.ID, Node: orphan.NodeName, Claim: stowagev1alpha1.ClaimReference{
		Namespace: orphan.ClaimNamespace, Name: orphan.ClaimName, UID: orphan.ClaimUID,
	}}
}

func removing(orphans []stowagev1alpha1.Orphan) []stowagev1alpha1.Orphan {
	return slices.DeleteFunc(slices.Clone(orphans), func(orphan stowagev1alpha1.Orphan) bool { return !orphan.Removing })
}

// tellNews records events about findings that are new.
func (r *Auditor) tellNews(before, after *stowagev1alpha1.StorageBackend) {
	last := before.Status.Audit
	if last == nil {
		last = &stowagev1alpha1.AuditStatus{}
	}
	if n := *after.Status.Orphans; isNews(n, before.Status.Orphans, idsOf(last.Orphans), idsOf(after.Status.Audit.Orphans)) {
		r.events.Eventf(after, nil, corev1.EventTypeWarning, "OrphansFound", "Audit",
			"no volume records what is held as %s: status.audit tells whose it was", named(n, idsOf(after.Status.Audit.Orphans)))
	}
	if n := *after.Status.LostVolumes; isNews(n, before.Status.LostVolumes, last.LostVolumes, after.Status.Audit.LostVolumes) {
		r.events.Eventf(after, nil, corev1.EventTypeWarning, "VolumesLost", "Audit",
			"no storage is found of %s: see that its disks or its server are there; if the data is gone for good, restore it, "+
				"or delete the claims and the volumes", named(n, after.Status.Audit.LostVolumes))
	}
}

// tellRemoved records events about orphans that were being removed, and are gone.
func (r *Auditor) tellRemoved(before, after *stowagev1alpha1.StorageBackend, held map[string]bool) {
	if before.Status.Audit == nil {
		return
	}
	for _, orphan := range removing(before.Status.Audit.Orphans) {
		if !held[orphan.ID] {
			r.events.Eventf(after, nil, corev1.EventTypeNormal, "OrphanRemoved", "Audit",
				"%s, which was made for claim %s/%s, isn't held any more", orphan.ID, orphan.ClaimNamespace, orphan.ClaimName)
		}
	}
}

// IsNews reports whether there are more findings than before, or others.
func isNews(count int32, before *int32, known, listed []string) bool {
	return count > ptr.Deref(before, 0) ||
		slices.ContainsFunc(listed, func(name string) bool { return !slices.Contains(known, name) && len(known) < MaxListed })
}

// named names a few, and counts the others.
func named(count int32, names []string) string {
	text := strings.Join(names[:min(maxNamed, len(names))], ", ")
	if more := int(count) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func idsOf(orphans []stowagev1alpha1.Orphan) []string {
	ids := make([]string, 0, len(orphans))
	for _, orphan := range orphans {
		ids = append(ids, orphan.ID)
	}
	return ids
}
