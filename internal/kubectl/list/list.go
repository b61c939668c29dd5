// Package list is the verb list of kubectl stowage: volumes with their backend, node, size,
// use, health, and until when their data is kept. Snapshots in their undelete windows are listed, too.
//
// cmd/kubectl-stowage calls it. It only reads.
package list

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
	"github.com/stowage-dev/stowage/internal/kubectl/facts"
)

// Volume is what is known of one volume object.
type Volume struct {
	Name    string `json:"name"`
	Claim   string `json:"claim,omitempty"`
	Backend string `json:"backend,omitempty"`
	Node    string `json:"node,omitempty"`
	Size    string `json:"size"`
	Used    string `json:"used,omitempty"`
	Phase   string `json:"phase"`
	// Health is one word, such as Healthy, IOError, Lost or Terminating. Empty: unknown.
	Health string `json:"health,omitempty"`
	// RetainedUntil is the end of the undelete window, in RFC 3339, or "kept".
	RetainedUntil string `json:"retainedUntil,omitempty"`
	Driver        string `json:"driver,omitempty"`
	Class         string `json:"class,omitempty"`
	Policy        string `json:"reclaimPolicy"`
	Handle        string `json:"handle,omitempty"`
	// Problem is a sentence about the health. Empty: there is none.
	Problem string `json:"problem,omitempty"`
}

// selection is which volumes a user asks for.
type selection struct {
	backend  string
	node     string
	retained bool
	// all includes volumes of drivers that Stowage doesn't serve.
	all bool
	// namespace of the claim; "" for all.
	namespace string
}

// volumes reads the volumes that were asked for, in the order of their claims.
func volumes(ctx context.Context, c *cluster.Cluster, s selection) ([]Volume, error) {
	pvs, nodeVolumes, backends := &corev1.PersistentVolumeList{}, &stowagev1alpha1.NodeVolumeList{}, &stowagev1alpha1.StorageBackendList{}
	if err := c.List(ctx, pvs); err != nil {
		return nil, err
	}
	if err := c.List(ctx, nodeVolumes); err != nil {
		return nil, err
	}
	if err := c.List(ctx, backends); err != nil {
		return nil, err
	}
	known := index(nodeVolumes.Items, backends.Items)
	found := []Volume{}
	for i := range pvs.Items {
		if v := known.volume(&pvs.Items[i]); (s.all || known.served.Has(&pvs.Items[i])) && s.has(&v) {
			found = append(found, v)
		}
	}
	slices.SortFunc(found, func(a, b Volume) int { return strings.Compare(a.Claim+" "+a.Name, b.Claim+" "+b.Name) })
	return found, nil
}

func (s selection) has(v *Volume) bool {
	switch {
	case s.backend != "" && v.Backend != s.backend, s.node != "" && v.Node != s.node:
		return false
	case s.namespace != "" && !strings.HasPrefix(v.Claim, s.namespace+"/"):
		return false
	default:
		return !s.retained || v.RetainedUntil != ""
	}
}

// known is what other objects record about volumes.
type known struct {
	nodeVolumes map[string]*stowagev1alpha1.NodeVolume
	lost        map[string]bool
	served      facts.Served
}

func index(nodeVolumes []stowagev1alpha1.NodeVolume, backends []stowagev1alpha1.StorageBackend) known {
	k := known{nodeVolumes: map[string]*stowagev1alpha1.NodeVolume{}, lost: map[string]bool{}, served: facts.ServedBy(backends)}
	for i := range nodeVolumes {
		k.nodeVolumes[nodeVolumes[i].Name] = &nodeVolumes[i]
	}
	for i := range backends {
		if audit := backends[i].Status.Audit; audit != nil {
			for _, name := range audit.LostVolumes {
				k.lost[name] = true
			}
		}
	}
	return k
}

// volume puts together what is known of a volume object.
func (k known) volume(pv *corev1.PersistentVolume) Volume {
	v := Volume{
		Name: pv.Name, Claim: facts.Claim(pv), Backend: k.served.Backend(pv), Node: facts.Node(pv), Size: facts.Size(pv), Phase: string(pv.Status.Phase),
		Driver: facts.Driver(pv), Class: pv.Spec.StorageClassName, Policy: string(pv.Spec.PersistentVolumeReclaimPolicy), Handle: facts.Handle(pv),
	}
	var nodeVolume *stowagev1alpha1.NodeVolume
	if v.Driver == stowagev1alpha1.LocalDriver {
		nodeVolume = k.nodeVolumes[v.Handle]
	}
	if nodeVolume != nil {
		v.Used = facts.Bytes(nodeVolume.Status.Used)
	}
	v.Health, v.Problem = facts.Health(pv, nodeVolume, k.lost[pv.Name])
	v.RetainedUntil = facts.Retained(pv).String()
	return v
}
