package recycle

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// nodeLabel is a label that identifies one node. The zero value identifies none.
type nodeLabel struct{ key, value string }

// nodeLabels are the labels that identify nodes.
var nodeLabels = []string{stowagev1alpha1.TopologyNodeLabel, corev1.LabelHostname}

// isOther reports whether two labels certainly identify two nodes.
func (l nodeLabel) isOther(other nodeLabel) bool {
	return l.key != "" && l.key == other.key && l.value != other.value
}

// pathOnNode returns the path of a static volume on a node, or "" for any other volume.
func pathOnNode(pv *corev1.PersistentVolume) string {
	switch {
	case pv.Spec.HostPath != nil:
		return pv.Spec.HostPath.Path
	case pv.Spec.Local != nil:
		return pv.Spec.Local.Path
	default:
		return ""
	}
}

// whyNotOnNode returns why no node's agent can empty a volume, or "".
func whyNotOnNode(pv *corev1.PersistentVolume) string {
	const anyDirectory = corev1.HostPathUnset
	kind := anyDirectory
	if pv.Spec.HostPath != nil {
		kind = ptr.Deref(pv.Spec.HostPath.Type, anyDirectory)
	}
	switch {
	case !slices.Contains([]corev1.HostPathType{anyDirectory, corev1.HostPathDirectory, corev1.HostPathDirectoryOrCreate}, kind),
		ptr.Deref(pv.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) == corev1.PersistentVolumeBlock:
		return "the volume isn't a directory"
	case labelOfNode(pv) == nodeLabel{}:
		return fmt.Sprintf("spec.nodeAffinity doesn't tie the volume to one node, by one value of the label %s or %s, "+
			"so the node with its data is not known", nodeLabels[0], nodeLabels[1])
	default:
		return ""
	}
}

// labelOfNode returns the label of the one node that a volume is tied to. A wider affinity may
// admit other nodes tomorrow: the agent would look for the data on the wrong node.
func labelOfNode(pv *corev1.PersistentVolume) nodeLabel {
	affinity := pv.Spec.NodeAffinity
	if affinity == nil || affinity.Required == nil || len(affinity.Required.NodeSelectorTerms) != 1 {
		return nodeLabel{}
	}
	for _, key := range nodeLabels {
		for _, asked := range affinity.Required.NodeSelectorTerms[0].MatchExpressions {
			if asked.Key == key && asked.Operator == corev1.NodeSelectorOpIn && len(asked.Values) == 1 {
				return nodeLabel{key, asked.Values[0]}
			}
		}
	}
	return nodeLabel{}
}

// nodeOf reads, live, the name of the node that a volume is tied to.
func (r *Recycler) nodeOf(ctx context.Context, pv *corev1.PersistentVolume) (string, error) {
	label, nodes := labelOfNode(pv), &corev1.NodeList{}
	if err := r.live.List(ctx, nodes, client.MatchingLabels{label.key: label.value}); err != nil {
		return "", fmt.Errorf("listing the nodes of volume %s: %w", pv.Name, err)
	}
	switch len(nodes.Items) {
	case 0:
		return "", backend.Unavailable.Errorf("no node has the label %s=%s, to which the volume is tied: its data stays until one has", label.key, label.value)
	case 1:
		return nodes.Items[0].Name, nil
	default:
		return "", backend.Invalid.Errorf("%d nodes have the label %s=%s, to which the volume is tied, and which of them has its data is not known",
			len(nodes.Items), label.key, label.value)
	}
}
