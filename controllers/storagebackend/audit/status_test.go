package audit

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

func TestAnOrphanIsRemovableIfItsIdIsThatOfAClaimThatIsGone(t *testing.T) {
	for name, test := range map[string]struct {
		id    string
		claim types.UID
		live  bool
		want  bool
	}{
		"first attempt":              {"pvc-a", "a", false, true},
		"later attempt":              {"pvc-a-2", "a", false, true},
		"claim is there":             {"pvc-a", "a", true, false},
		"claim has another volume":   {"pvc-a-3", "a", true, true},
		"another claim's":            {"pvc-b", "a", false, false},
		"begins like the claim's":    {"pvc-ab", "a", false, false},
		"attempt that is none":       {"pvc-a-x", "a", false, false},
		"attempt that is never made": {"pvc-a-1", "a", false, false},
		"attempt with zeros":         {"pvc-a-02", "a", false, false},
		"negative attempt":           {"pvc-a--2", "a", false, false},
		"no claim":                   {"pvc-", "", false, false},
		"no id":                      {"", "a", false, false},
	} {
		held := backend.Held{ID: test.id, Claim: stowagev1alpha1.ClaimReference{UID: test.claim}}
		live := map[types.UID]string{"waits": ""}
		if test.live {
			live[test.claim] = "pvc-a"
		}
		if got := removable(held, live); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestAFewAreNamedAndTheOthersCounted(t *testing.T) {
	for want, names := range map[string][]string{
		"a":                  {"a"},
		"a, b, c":            {"a", "b", "c"},
		"a, b, c and 2 more": {"a", "b", "c", "d", "e"},
	} {
		if got := someOf(int32(len(names)), names); got != want {
			t.Errorf("%v: %s", names, got)
		}
	}
}
