package backend

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// Allows tells whether volumes of a class with these allowedTopologies may lie on a
// node: where there are none, on each; else where one term is met, all of it.
func Allows(terms []corev1.TopologySelectorTerm, node *corev1.Node) bool {
	return len(terms) == 0 || slices.ContainsFunc(terms, func(term corev1.TopologySelectorTerm) bool {
		return !slices.ContainsFunc(term.MatchLabelExpressions, func(wanted corev1.TopologySelectorLabelRequirement) bool {
			return !slices.Contains(wanted.Values, node.Labels[wanted.Key])
		})
	})
}

// Mismatch says which labels keep a node out of what a class allows; empty where none
// does.
func Mismatch(terms []corev1.TopologySelectorTerm, node *corev1.Node) string {
	if Allows(terms, node) {
		return ""
	}
	var unmet []string
	for _, term := range terms {
		for _, wanted := range term.MatchLabelExpressions {
			if has := node.Labels[wanted.Key]; !slices.Contains(wanted.Values, has) {
				unmet = append(unmet, fmt.Sprintf("its %s is %q, not one of %s", wanted.Key, has, strings.Join(wanted.Values, ", ")))
			}
		}
	}
	return strings.Join(unmet, "; ")
}

// TopologiesOf is what the class that a backend keeps allows: the zones that a cloud
// makes disks in, so that the scheduler chooses no node of another. They are sorted: a
// spec that lists them in another order says the same. What nodes a local backend is on
// the scheduler learns from their CSIStorageCapacities.
func TopologiesOf(object *stowagev1alpha1.StorageBackend) []corev1.TopologySelectorTerm {
	if object.Spec.GCE == nil || len(object.Spec.GCE.Zones) == 0 {
		return nil
	}
	return []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
		{Key: corev1.LabelTopologyZone, Values: slices.Sorted(slices.Values(object.Spec.GCE.Zones))},
	}}}
}

// LiesOn tells whether volumes of a local backend may lie on a node: its labels are
// selected, and one of them says where it is.
func LiesOn(spec *stowagev1alpha1.LocalBackend, node *corev1.Node) bool {
	return labels.SelectorFromSet(spec.NodeSelector).Matches(labels.Set(node.Labels)) &&
		node.Labels[stowagev1alpha1.TopologyNodeLabel] != ""
}

// AffinityTo keeps a volume that could be used everywhere to what a class allows;
// nil where it allows everything.
func AffinityTo(terms []corev1.TopologySelectorTerm) *corev1.VolumeNodeAffinity {
	if len(terms) == 0 {
		return nil
	}
	selector := &corev1.NodeSelector{}
	for _, term := range terms {
		var wanted []corev1.NodeSelectorRequirement
		for _, expression := range term.MatchLabelExpressions {
			wanted = append(wanted, corev1.NodeSelectorRequirement{
				Key: expression.Key, Operator: corev1.NodeSelectorOpIn, Values: expression.Values,
			})
		}
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: wanted})
	}
	return &corev1.VolumeNodeAffinity{Required: selector}
}
