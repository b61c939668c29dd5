package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/provisioned"
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
	// retained is the number of volumes and snapshots without a record that a person marked to be kept.
	retained int32
	// live maps the UIDs of live claims to the volumes that they are bound to.
	live map[types.UID]string
	// unaudited says what the audit can't find: orphans and, where unknown, lost volumes.
	unaudited string
	unknown   bool
}

// counts returns how many orphans and lost volumes there are; nil where the audit can't find any.
func (f findings) counts() (orphans, lost *int32) {
	if f.unaudited == "" {
		orphans = ptr.To(int32(len(f.orphans)))
	}
	if !f.unknown {
		lost = ptr.To(int32(len(f.lost)))
	}
	return orphans, lost
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
	status := &stowagev1alpha1.AuditStatus{Time: now, Retained: found.retained, LostVolumes: found.lost[:min(MaxListed, len(found.lost))], Unaudited: found.unaudited}
	for _, held := range found.orphans {
		listed := statusOf(held)
		since, known := seen[listed]
		if !known {
			since = now
		}
		after := object.Spec.Audit.RemoveOrphansAfter
		status.Orphans = append(status.Orphans, stowagev1alpha1.Orphan{
			ID: listed.ID, ClaimNamespace: listed.Claim.Namespace, ClaimName: listed.Claim.Name, ClaimUID: listed.Claim.UID,
			SnapshotUID: listed.Snapshot, NodeName: held.Node, Since: since,
			Removing: after != nil && now.Sub(since.Time) >= after.Duration && removable(held, found.live),
		})
	}
	slices.SortFunc(status.Orphans, func(a, b stowagev1alpha1.Orphan) int {
		return cmp.Or(a.Since.Compare(b.Since.Time), cmp.Compare(a.ID, b.ID))
	})
	status.Orphans = status.Orphans[:min(MaxListed, len(status.Orphans))]
	return status
}

// statusOf returns the part of a held volume that the status has. The claim's name comes from a
// record that others may have written: a name that is too long for a claim is cut.
func statusOf(held backend.Held) backend.Held {
	const longest = 253
	held.Claim.Namespace = message.Cut(held.Claim.Namespace, longest)
	held.Claim.Name = message.Cut(held.Claim.Name, longest)
	held.Claim.UID = types.UID(message.Cut(string(held.Claim.UID), longest))
	return held
}

// removable reports whether an orphan may be removed at all. Its id must be that of a deleted
// claim, or of one that is bound to another volume. A claim that lost its PersistentVolume
// still needs the storage. A person decides about storage on a node without a record. After a
// restore of the cluster, that is everything made since the backup. A person decides about snapshots, too: they may
// be the last copy of a claim that is gone. What CSI calls made, such calls remove.
func removable(held backend.Held, live map[types.UID]string) bool {
	bound, isLive := live[held.Claim.UID]
	return held.Node == "" && held.Snapshot == "" && !isKept(held) && provisioned.IsVolumeIDOf(held.ID, held.Claim.UID) && (!isLive || bound != "" && bound != held.ID)
}

// HeldAs returns the backend's description of an orphan.
func HeldAs(orphan stowagev1alpha1.Orphan) backend.Held {
	return backend.Held{ID: orphan.ID, Node: orphan.NodeName, Snapshot: orphan.SnapshotUID, Claim: stowagev1alpha1.ClaimReference{
		Namespace: orphan.ClaimNamespace, Name: orphan.ClaimName, UID: orphan.ClaimUID,
	}}
}

func removing(orphans []stowagev1alpha1.Orphan) []stowagev1alpha1.Orphan {
	return slices.DeleteFunc(slices.Clone(orphans), func(orphan stowagev1alpha1.Orphan) bool { return !orphan.Removing })
}

// isNews reports whether there are more findings than before, or others.
func isNews(count int32, before *int32, known, listed []string) bool {
	return count > ptr.Deref(before, 0) ||
		slices.ContainsFunc(listed, func(name string) bool { return !slices.Contains(known, name) && len(known) < MaxListed })
}

// someOf names a few, and counts the others.
func someOf(count int32, names []string) string {
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
