package wire

import (
	"slices"
	"testing"
)

func TestFiltersLetThroughWhatTheySay(t *testing.T) {
	disk := map[string]any{
		"name": "pvc-1", "sizeGb": "100", "status": "READY", "boot": false,
		"labels": map[string]string{"team": "storage", "cluster": "a-b"},
		"users":  []string{"http://cloud/projects/p/zones/z/instances/node-1"},
	}
	through := []string{
		"",
		"name = pvc-1",
		"name=pvc-1",
		`name = "pvc-1"`,
		"name != pvc-2",
		"name = pvc-*",
		"name eq pvc-.*",
		"labels.team = storage",
		"labels.team=storage",
		"labels.none != storage",
		"labels.team:*",
		"-labels.none:*",
		"labels.cluster:a",
		"sizeGb > 99",
		"sizeGb >= 100",
		"boot = false",
		"users:node-1",
		"name = x OR name = pvc-1",
		"(name = pvc-1) (status = READY)",
		"(name = pvc-1) AND (status = READY)",
		"(name = x AND name = y) OR (name = pvc-1)",
		`users = "http://cloud/projects/p/zones/z/instances/node-1"`,
		"users = http://cloud/projects/p/zones/z/instances/node-1",
	}
	stopped := []string{
		"name = pvc-2",
		"name eq pvc",
		"name ne pvc-.*",
		"labels.team = network",
		"labels.none = storage",
		"labels.none:*",
		"NOT labels.team:*",
		"sizeGb < 100",
		"sizeGb <= 9",
		"users:node-2",
		"name = pvc-1 AND status = CREATING",
		"(name = pvc-1) (status = CREATING)",
		"name = x AND name = y OR name = pvc-1",
		"NOT (name = x OR labels.team = storage)",
	}
	for i, text := range slices.Concat(through, stopped) {
		parsed, err := parseFilter(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got, want := parsed.holds(disk), i < len(through); got != want {
			t.Errorf("%q lets it through: %t, want %t", text, got, want)
		}
	}
}

func TestBrokenFiltersAreRefused(t *testing.T) {
	for _, text := range []string{
		"name", "name =", "= x", "(name = x", "name = x)", `name = "x`, "name == x", "name = x OR", "name eq (", "AND", "name x y", "NOT",
	} {
		if parsed, err := parseFilter(text); err == nil {
			t.Errorf("%q is taken for %+v", text, parsed.root)
		}
	}
}
