package labels_test

import (
	"testing"

	"github.com/stowage-dev/stowage/internal/backend/gce/labels"
)

func TestLabelsHoldWhateverNamesThereAre(t *testing.T) {
	long := "a-name-that-is-longer-than-any-label-of-google-can-be-and-has.dots.in.it"
	uid := "6a1b0e2f-4b0c-4c6e-9a53-0d5f0e8a7c11"
	for name, want := range map[string]string{"cloud": "cloud", "eu.cloud": "eu_cloud", uid: uid, "ümlaut": "", long: "", long + "2": ""} {
		got := labels.ValueOf(name)
		if want != "" && got != want || !labels.IsText(got) {
			t.Errorf("%q becomes %q", name, got)
		}
	}
	if labels.ValueOf(long) == labels.ValueOf(long+"2") {
		t.Error("two names become one")
	}
}
