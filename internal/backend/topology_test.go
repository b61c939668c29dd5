package backend_test

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/test/harness/fixture"
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

func TestAKeptClassAllowsTheZonesOfItsBackend(t *testing.T) {
	gce := func(zones ...string) *stowagev1alpha1.StorageBackend {
		return fixture.LocalBackend("b", func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.Local, object.Spec.GCE = nil, &stowagev1alpha1.GCEBackend{Zones: zones}
		})
	}
	zones := func(values ...string) []corev1.TopologySelectorTerm {
		return []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
			{Key: "topology.kubernetes.io/zone", Values: values},
		}}}
	}
	for name, test := range map[string]struct {
		object *stowagev1alpha1.StorageBackend
		want   []corev1.TopologySelectorTerm
	}{
		"one zone":       {gce("a"), zones("a")},
		"some zones":     {gce("c", "a", "b"), zones("a", "b", "c")},
		"none":           {gce(), nil},
		"disks of nodes": {fixture.LocalBackend("b"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			listed := slices.Clone(zonesOf(test.object))
			if got := backend.TopologiesOf(test.object); !reflect.DeepEqual(got, test.want) {
				t.Errorf("it allows %v", got)
			}
			if !slices.Equal(listed, zonesOf(test.object)) {
				t.Error("the spec was changed")
			}
		})
	}
}

func zonesOf(object *stowagev1alpha1.StorageBackend) []string {
	if object.Spec.GCE == nil {
		return nil
	}
	return object.Spec.GCE.Zones
}

func TestWhyAClassDoesNotAllowANode(t *testing.T) {
	term := func(key string, values ...string) corev1.TopologySelectorTerm {
		return corev1.TopologySelectorTerm{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: key, Values: values}}}
	}
	node := fixture.Node("n")
	node.Labels["zone"], node.Labels["disks"] = "c", "ssd"
	both := term("zone", "a", "b")
	both.MatchLabelExpressions = append(both.MatchLabelExpressions, term("disks", "ssd").MatchLabelExpressions...)
	for name, test := range map[string]struct {
		terms []corev1.TopologySelectorTerm
		want  string
	}{
		"it does":               {nil, ""},
		"another zone":          {[]corev1.TopologySelectorTerm{both}, `its zone is "c", not one of a, b`},
		"a label that it lacks": {[]corev1.TopologySelectorTerm{term("rack", "1")}, `its rack is "", not one of 1`},
		"neither of two terms":  {[]corev1.TopologySelectorTerm{term("zone", "a"), term("zone", "b")}, `its zone is "c", not one of a; its zone is "c", not one of b`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := backend.Mismatch(test.terms, node); got != test.want {
				t.Errorf("it says %q", got)
			}
		})
	}
}
