package upstream_test

import (
	"slices"
	"strings"
	"testing"
)

const list = `The following spec names can be used with 'ginkgo run --focus/skip':
    test/e2e/storage/pv_protection.go:102: [sig-storage] PV Protection stays
    test/e2e/storage/persistent_volumes.go:450: [sig-storage] PersistentVolumes NFS writes [Slow]

`

func TestSpecsAreReadFromTheListOfE2eTest(t *testing.T) {
	want := []string{"[sig-storage] PV Protection stays", "[sig-storage] PersistentVolumes NFS writes [Slow]"}
	if got := specsIn(list); !slices.Equal(got, want) {
		t.Errorf("it reads %q", got)
	}
}

// selected is independent of what the environment of `make e2e-upstream` selects.
func selected(t *testing.T, skips ...skip) *selection {
	t.Helper()
	t.Setenv("STOWAGE_UPSTREAM", "all")
	t.Setenv("STOWAGE_UPSTREAM_FOCUS", "")
	return &selection{
		suites: []suite{{Name: "all", Specs: []string{"sig-storage"}}}, skips: skips,
		specs: map[string][]string{}, skipped: map[string][]string{},
	}
}

func TestAnEntryThatMatchesNoSpecIsAnError(t *testing.T) {
	known := map[string][]string{"all": specsIn(list)}
	if err := selected(t, skip{Spec: "NFS", Reason: "no client"}).sort(known, "default"); err != nil {
		t.Error(err)
	}
	for _, entry := range []skip{{Spec: "iSCSI", Reason: "gone"}, {Spec: "NFS"}, {Spec: "(", Reason: "no expression"}} {
		if err := selected(t, entry).sort(known, "default"); err == nil {
			t.Errorf("%+v is taken", entry)
		}
	}
	unknown := selected(t)
	unknown.suites[0].Specs = []string{"iSCSI"}
	if err := unknown.sort(known, "default"); err == nil {
		t.Error("a suite of specs that aren't there is taken")
	}
}

func TestAnEntryOfOneOverlayCountsThereAlone(t *testing.T) {
	for overlay, runs := range map[string]int{"default": 2, "standalone": 1} {
		s := selected(t, skip{Spec: "NFS", Overlay: "standalone", Reason: "why"})
		if err := s.sort(map[string][]string{"all": specsIn(list)}, overlay); err != nil || len(s.specs["all"]) != runs || len(s.skipped["why"]) != 2-runs {
			t.Errorf("with %s %d specs run, %v: %v", overlay, len(s.specs["all"]), s.skipped, err)
		}
	}
}

func TestANameThatBeginsLikeAnotherIsNotTakenForIt(t *testing.T) {
	focus := exactly([]string{"copies (ROX mode)"})
	if !strings.HasSuffix(focus, ")$") || !strings.Contains(focus, `\(ROX mode\)`) {
		t.Errorf("the expression is %q", focus)
	}
}
