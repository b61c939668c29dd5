package backend

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// Allows reports whether volumes of a class with these allowedTopologies may be on a node. Without
// terms that is each node, else a node that meets all of one term.
func Allows(terms []corev1.TopologySelectorTerm, node *corev1.Node) bool {
	return len(terms) == 0 || slices.ContainsFunc(terms, func(term corev1.TopologySelectorTerm) bool {
		return !slices.ContainsFunc(term.MatchLabelExpressions, func(label corev1.TopologySelectorLabelRequirement) bool {
			return !slices.Contains(label.Values, node.Labels[label.Key])
		})
	})
}

// Mismatch names the labels by which a class excludes a node; empty where it allows the node.
func Mismatch(terms []corev1.TopologySelectorTerm, node *corev1.Node) string {
	if Allows(terms, node) {
		return ""
	}
	var unmet []string
	for _, term := range terms {
		for _, label := range term.MatchLabelExpressions {
			if has := node.Labels[label.Key]; !slices.Contains(label.Values, has) {
				unmet = append(unmet, fmt.Sprintf("its %s is %q, not one of %s", label.Key, has, strings.Join(label.Values, ", ")))
			}
		}
	}
	return strings.Join(unmet, "; ")
}

// TopologiesOf are the allowedTopologies of the class that a backend keeps. They are the zones in
// which a cloud makes disks, so that the scheduler chooses no node of another zone. They are
// sorted, so their order in the spec makes no difference. For a local backend the scheduler reads
// CSIStorageCapacities.
func TopologiesOf(object *stowagev1alpha1.StorageBackend) []corev1.TopologySelectorTerm {
	if object.Spec.GCE == nil || len(object.Spec.GCE.Zones) == 0 {
		return nil
	}
	return []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
		{Key: corev1.LabelTopologyZone, Values: slices.Sorted(slices.Values(object.Spec.GCE.Zones))},
	}}}
}

// LiesOn reports whether volumes of a local backend may be on a node: the node selector matches,
// and the node has the topology label.
func LiesOn(spec *stowagev1alpha1.LocalBackend, node *corev1.Node) bool {
	return labels.SelectorFromSet(spec.NodeSelector).Matches(labels.Set(node.Labels)) &&
		node.Labels[stowagev1alpha1.TopologyNodeLabel] != ""
}

// AffinityToLabel restricts a volume to the nodes that have a label with one of these values.
func AffinityToLabel(key string, values ...string) *corev1.VolumeNodeAffinity {
	return AffinityTo([]corev1.TopologySelectorTerm{{
		MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: key, Values: values}},
	}})
}

// AffinityTo restricts a volume that could be used everywhere to what a class allows; nil where
// the class allows everything.
func AffinityTo(terms []corev1.TopologySelectorTerm) *corev1.VolumeNodeAffinity {
	if len(terms) == 0 {
		return nil
	}
	selector := &corev1.NodeSelector{}
	for _, term := range terms {
		var requirements []corev1.NodeSelectorRequirement
		for _, expression := range term.MatchLabelExpressions {
			requirements = append(requirements, corev1.NodeSelectorRequirement{
				Key: expression.Key, Operator: corev1.NodeSelectorOpIn, Values: expression.Values,
			})
		}
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: requirements})
	}
	return &corev1.VolumeNodeAffinity{Required: selector}
}
