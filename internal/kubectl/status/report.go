// Package status is the verb status of kubectl stowage. It shows backends, nodes and their room,
// and what waits and why. In the format wide it also shows which claims are attached and mounted
// where.
//
// cmd/kubectl-stowage calls it. It only reads: read.go reads the objects, the other files put
// them together without a client.
package status

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/facts"
)

// Report is what status prints.
type Report struct {
	Backends []Backend `json:"backends"`
	Nodes    []Node    `json:"nodes"`
	Volumes  Volumes   `json:"volumes"`
	Waiting  []Waiting `json:"waiting"`
	// Claims are only in the formats wide, json and yaml.
	Claims []Claim `json:"claims,omitempty"`
}

// Backend is one StorageBackend.
type Backend struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Ready string `json:"ready"`
	// Why it isn't Ready.
	Why     string `json:"why,omitempty"`
	Total   string `json:"total,omitempty"`
	Used    string `json:"used,omitempty"`
	Volumes *int32 `json:"volumes,omitempty"`
	Orphans *int32 `json:"orphans,omitempty"`
	Lost    *int32 `json:"lost,omitempty"`
}

// Node is a node, or one of its disks.
type Node struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
	// Backend has the disk. Empty: the node has no disk of a backend.
	Backend string `json:"backend,omitempty"`
	Disk    string `json:"disk,omitempty"`
	// Available is what new volumes can have, Total the size of the disk.
	Available string `json:"available,omitempty"`
	Total     string `json:"total,omitempty"`
	// Attached is how many volumes are attached to the node.
	Attached int `json:"attached"`
	// Why the node or the disk isn't Ready.
	Why string `json:"why,omitempty"`
}

// Volumes counts the volumes of Stowage's drivers.
type Volumes struct {
	Count    int            `json:"count"`
	ByPhase  map[string]int `json:"byPhase"`
	Retained int            `json:"retained"`
	// NextDeadline is when the first undelete window ends.
	NextDeadline *time.Time `json:"nextDeadline,omitempty"`
}

// report puts a report together.
func report(o *objects, now time.Time) *Report {
	return &Report{
		Backends: backends(o.backends), Nodes: nodes(o), Volumes: volumes(o),
		Waiting: waiting(o, now), Claims: claims(o),
	}
}

func backends(all []stowagev1alpha1.StorageBackend) []Backend {
	found := make([]Backend, 0, len(all))
	for i := range all {
		s := &all[i].Status
		ready, why := facts.Condition(s.Conditions, stowagev1alpha1.ReadyCondition)
		b := Backend{Name: all[i].Name, Type: string(s.Type), Ready: string(ready), Why: why, Volumes: s.Volumes, Orphans: s.Orphans, Lost: s.LostVolumes}
		if s.Capacity != nil {
			b.Total, b.Used = facts.Bytes(s.Capacity.Total), facts.Bytes(s.Capacity.Used)
		}
		found = append(found, b)
	}
	return found
}

// nodes are the disks of each node; a node without a disk has one entry.
func nodes(o *objects) []Node {
	attached, found := map[string]int{}, []Node{}
	for i := range o.attachments {
		if o.attachments[i].Status.Attached {
			attached[o.attachments[i].Spec.NodeName]++
		}
	}
	known := map[string]bool{}
	for i := range o.nodes {
		node := Node{Name: o.nodes[i].Name, Attached: attached[o.nodes[i].Name]}
		known[node.Name] = true
		if node.Ready, node.Why = facts.NodeReady(&o.nodes[i]); node.Ready {
			node.Why = ""
		}
		found = append(found, withDisks(node, o.disks)...)
	}
	for i := range o.disks {
		if name := o.disks[i].Spec.NodeName; !known[name] {
			known[name] = true
			found = append(found, withDisks(Node{Name: name, Why: "there is no Node object of this name"}, o.disks)...)
		}
	}
	return found
}

// withDisks is a node once for each of its disks.
func withDisks(node Node, disks []stowagev1alpha1.NodeDisk) []Node {
	var found []Node
	for i := range disks {
		d := &disks[i]
		if d.Spec.NodeName != node.Name {
			continue
		}
		one := node
		one.Backend, one.Available, one.Total = d.Spec.Backend, facts.Bytes(d.Status.Available), facts.Bytes(d.Status.Total)
		ready, why := facts.Condition(d.Status.Conditions, stowagev1alpha1.ReadyCondition)
		_, full := facts.Condition(d.Status.Conditions, stowagev1alpha1.HasRoomCondition)
		switch {
		case ready != metav1.ConditionTrue:
			one.Disk, one.Why = "NotReady", why
		case full != "":
			one.Disk, one.Why = "Full", full
		default:
			one.Disk = "Ready"
		}
		found = append(found, one)
	}
	if len(found) == 0 {
		return []Node{node}
	}
	return found
}

func volumes(o *objects) Volumes {
	v, served := Volumes{ByPhase: map[string]int{}}, facts.ServedBy(o.backends)
	for i := range o.pvs {
		pv := &o.pvs[i]
		if !served.Has(pv) {
			continue
		}
		v.Count++
		v.ByPhase[string(pv.Status.Phase)]++
		r := facts.Retained(pv)
		if r.String() != "" {
			v.Retained++
		}
		if r.Until != nil && (v.NextDeadline == nil || r.Until.Before(*v.NextDeadline)) {
			v.NextDeadline = r.Until
		}
	}
	return v
}

// String is the counts in a sentence.
func (v Volumes) String() string {
	text, phases := fmt.Sprintf("%d", v.Count), make([]string, 0, len(v.ByPhase))
	for phase := range v.ByPhase {
		phases = append(phases, phase)
	}
	slices.Sort(phases)
	for i, phase := range phases {
		separator := ", "
		if i == 0 {
			separator = ": "
		}
		text += fmt.Sprintf("%s%d %s", separator, v.ByPhase[phase], phase)
	}
	if v.Retained > 0 {
		text += fmt.Sprintf("; the data of %d without a claim is kept (kubectl stowage list --retained)", v.Retained)
	}
	if v.NextDeadline != nil {
		text += ", the first until " + v.NextDeadline.UTC().Format(time.RFC3339)
	}
	return text
}
