// Package audit is the verb audit of kubectl stowage. It shows the orphans and lost volumes that
// the last audit of each StorageBackend found, and what to do about them.
//
// cmd/kubectl-stowage calls it. It only reads status and events, and starts no audit itself.
package audit

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
	"github.com/stowage-dev/stowage/internal/kubectl/facts"
)

// overdue is how many intervals an audit may be late before that is a finding.
const overdue = 3

// Report is what the last audits found.
type Report struct {
	Backends []Backend    `json:"backends"`
	Findings []Finding    `json:"findings"`
	Disks    []Unrecorded `json:"unrecorded,omitempty"`
}

// Backend is the last audit of a StorageBackend.
type Backend struct {
	Name     string `json:"name"`
	Interval string `json:"interval"`
	// Time at which the last audit ended. Nil: none did, or the backend can't list volumes.
	Time *metav1.Time `json:"time,omitempty"`
	// Overdue means that no audit ended for three intervals.
	Overdue  bool  `json:"overdue,omitempty"`
	Orphans  int32 `json:"orphans"`
	Lost     int32 `json:"lost"`
	Retained int32 `json:"retained"`
	// RemoveOrphansAfter is spec.audit.removeOrphansAfter. Empty: orphans are never removed.
	RemoveOrphansAfter string `json:"removeOrphansAfter,omitempty"`
	// Unaudited says what no audit of the backend finds, and why.
	Unaudited string `json:"unaudited,omitempty"`
}

// Finding is an orphan or a lost volume.
type Finding struct {
	Kind    string `json:"kind"`
	Backend string `json:"backend"`
	// ID is the orphan's id in the backend, or the name of the lost PersistentVolume.
	ID    string `json:"id"`
	Claim string `json:"claim,omitempty"`
	Node  string `json:"node,omitempty"`
	// Since is when an audit first found it.
	Since *metav1.Time `json:"since,omitempty"`
	Do    string       `json:"do"`
}

// Unrecorded counts the volumes on a node's disk without a NodeVolume.
type Unrecorded struct {
	Node    string `json:"node"`
	Backend string `json:"backend"`
	Count   int32  `json:"count"`
}

// read reads what the last audits found.
func read(ctx context.Context, c *cluster.Cluster) (*Report, error) {
	backends, disks, pvs := &stowagev1alpha1.StorageBackendList{}, &stowagev1alpha1.NodeDiskList{}, &corev1.PersistentVolumeList{}
	if err := c.List(ctx, backends); err != nil {
		return nil, err
	}
	if err := c.List(ctx, disks); err != nil {
		return nil, err
	}
	if err := c.List(ctx, pvs); err != nil {
		return nil, err
	}
	claims := map[string]string{}
	for i := range pvs.Items {
		claims[pvs.Items[i].Name] = facts.Claim(&pvs.Items[i])
	}
	return report(backends.Items, disks.Items, claims, c.Clock.Now()), nil
}

// report puts a report together. claims has the claim of each volume object.
func report(backends []stowagev1alpha1.StorageBackend, disks []stowagev1alpha1.NodeDisk, claims map[string]string, now time.Time) *Report {
	r := &Report{Backends: []Backend{}, Findings: []Finding{}}
	for i := range backends {
		b := &backends[i]
		r.Backends = append(r.Backends, backend(b, now))
		if b.Status.Audit == nil {
			continue
		}
		for o := range b.Status.Audit.Orphans {
			r.Findings = append(r.Findings, orphan(b, &b.Status.Audit.Orphans[o]))
		}
		for _, name := range b.Status.Audit.LostVolumes {
			r.Findings = append(r.Findings, Finding{
				Kind: "lost", Backend: b.Name, ID: name, Claim: claims[name],
				Do: "look for the storage where it was: kubectl stowage explain pv " + name + "; if it is gone, delete the claim and restore a backup",
			})
		}
	}
	for i := range disks {
		if u := disks[i].Status.Unrecorded; u != nil && u.Count > 0 {
			r.Disks = append(r.Disks, Unrecorded{Node: disks[i].Spec.NodeName, Backend: disks[i].Spec.Backend, Count: u.Count})
		}
	}
	return r
}

func backend(b *stowagev1alpha1.StorageBackend, now time.Time) Backend {
	one := Backend{Name: b.Name, Interval: b.Spec.Audit.Interval.Duration.String(), Orphans: value(b.Status.Orphans), Lost: value(b.Status.LostVolumes)}
	if after := b.Spec.Audit.RemoveOrphansAfter; after != nil {
		one.RemoveOrphansAfter = after.Duration.String()
	}
	if b.Status.Audit != nil {
		one.Time, one.Retained, one.Unaudited = &b.Status.Audit.Time, b.Status.Audit.Retained, b.Status.Audit.Unaudited
		interval := b.Spec.Audit.Interval.Duration
		one.Overdue = interval > 0 && now.Sub(one.Time.Time) > overdue*interval
	}
	return one
}

// orphan says what to do about an orphan, as docs/design/audits.md does.
func orphan(b *stowagev1alpha1.StorageBackend, o *stowagev1alpha1.Orphan) Finding {
	f := Finding{Kind: "orphan", Backend: b.Name, ID: o.ID, Node: o.NodeName, Since: &o.Since}
	if o.ClaimName != "" {
		f.Claim = o.ClaimNamespace + "/" + o.ClaimName
	}
	after := b.Spec.Audit.RemoveOrphansAfter
	switch {
	case o.Removing:
		f.Do = "its data is being removed"
	case o.SnapshotUID != "":
		f.Do = "it is a snapshot: to use it, or to remove it, create a VolumeSnapshotContent with this snapshotHandle"
	case o.NodeName != "" && strings.HasPrefix(o.ID, "snapshot-"):
		f.Do = "it is a snapshot: copy from its folder on the node what you need; to remove it, delete the folder"
	case o.NodeName != "":
		f.Do = "to use it again, create a PersistentVolume with this volumeHandle; to remove it, delete its folder on the node"
	case after == nil:
		f.Do = "to keep it, create a PersistentVolume with this volumeHandle; to remove it, set spec.audit.removeOrphansAfter of the backend"
	default:
		f.Do = "to keep it, create a PersistentVolume with this volumeHandle before " + o.Since.Add(after.Duration).UTC().Format(time.RFC3339) + ", when removal begins"
	}
	return f
}

func value(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}
