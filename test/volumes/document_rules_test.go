package volumes_test

import (
	"maps"
	"strings"
	"testing"
)

// complete is a document that leaves nothing out: emptyDir is served, all else isn't.
func complete() *document {
	insteadOf := map[string]string{}
	for _, name := range typesOfAPI() {
		insteadOf[name] = "use another"
	}
	delete(insteadOf, "emptyDir")
	return newDocument(proofs{"emptyDir/disk": {{"TestOne", "a/one_test.go"}, {"is made | removed", "b/two_test.go"}}}, insteadOf)
}

const aboutDisk = `{{proofs "emptyDir/disk"}}`

func TestProofsAreShownAsLinks(t *testing.T) {
	got, err := complete().render("| a directory | " + aboutDisk + " |")
	want := `| a directory | [TestOne](../a/one_test.go)<br>[is made \| removed](../b/two_test.go) |`
	if err != nil || got != want {
		t.Errorf("got %s (%v)", got, err)
	}
}

func TestWhatIsNotServedIsListedInOrder(t *testing.T) {
	got, err := complete().render(aboutDisk + "\n{{notServed}}")
	if err != nil || !strings.Contains(got, "| `fc` | use another |\n| `flexVolume` | use another |") {
		t.Errorf("got %s (%v)", got, err)
	}
}

func TestWhatTheDocumentAndTheTestsDoNotAgreeOnIsNamed(t *testing.T) {
	tests := map[string]struct {
		change func(*document)
		prose  string
		says   string
	}{
		"no test": {func(*document) {}, aboutDisk + `{{proofs "emptyDir/Memory"}}`, "no test proves emptyDir/Memory"},
		"a marker for nothing": {
			func(d *document) { d.proofs["emptyDir/dsik"] = []proof{{"TestOne", "one_test.go"}} }, aboutDisk,
			"one_test.go says that a test proves emptyDir/dsik",
		},
		"a type left out":   {func(d *document) { delete(d.insteadOf, "iscsi") }, aboutDisk, "of volume type iscsi nothing is said"},
		"a type in both":    {func(d *document) { d.insteadOf["emptyDir"] = "use another" }, aboutDisk, "emptyDir is proved to be served, and listed as not served"},
		"a type not proved": {func(d *document) { maps.DeleteFunc(d.proofs, func(string, []proof) bool { return true }) }, "", "of volume type emptyDir nothing is said"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			document := complete()
			test.change(document)
			if _, err := document.render(test.prose); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %s", err, test.says)
			}
		})
	}
}
