package backend_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/test/fixture"
)

func TestWhatAClassAllowsIsWhereItsVolumesCanBeUsed(t *testing.T) {
	zone := func(values ...string) corev1.TopologySelectorTerm {
		return corev1.TopologySelectorTerm{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
			{Key: "zone", Values: values}, {Key: "disks", Values: []string{"ssd"}},
		}}
	}
	node := fixture.Node("n")
	node.Labels["zone"], node.Labels["disks"] = "a", "ssd"
	for name, test := range map[string]struct {
		terms []corev1.TopologySelectorTerm
		want  bool
	}{
		"everything":            {nil, true},
		"the node's zone":       {[]corev1.TopologySelectorTerm{zone("a", "b")}, true},
		"another zone":          {[]corev1.TopologySelectorTerm{zone("b")}, false},
		"one term of two":       {[]corev1.TopologySelectorTerm{zone("b"), zone("a")}, true},
		"a label that it lacks": {[]corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "rack", Values: []string{"1"}}}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := backend.Allows(test.terms, node); got != test.want {
				t.Errorf("it allows the node: %t", got)
			}
			pv := fixture.Volume("v")
			pv.Spec.NodeAffinity = backend.AffinityTo(test.terms)
			if usable := volume.CheckNodeAffinity(pv, node.Labels) == nil; usable != test.want {
				t.Errorf("the volume is usable on the node: %t", usable)
			}
		})
	}
}
