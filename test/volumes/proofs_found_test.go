package volumes_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// sourceOf is a file of tests with markers above some of them.
const sourceOf = `package some_test

//proves:emptyDir/disk emptyDir/fsGroup
func TestADirectoryIsMade(t *testing.T) {}

// A comment about it.
//
//proves:emptyDir/disk
func TestADirectoryIsRemoved(t *testing.T) {}

var _ = Describe("A volume", func() {
	Context("of memory", func() {
		//proves:emptyDir/Memory
		It("is mounted", func() {})
	})
	DescribeTable("goes", func() {},
		//proves:emptyDir/end
		Entry("with its pod", 1))
})
`

func read(t *testing.T, source string) (proofs, error) {
	t.Helper()
	found := proofs{}
	err := found.add("some_test.go", []byte(source))
	return found, err
}

func TestTestsAreFoundByTheMarkersAboveThem(t *testing.T) {
	want := map[string][]string{
		"emptyDir/disk":    {"TestADirectoryIsMade", "TestADirectoryIsRemoved"},
		"emptyDir/fsGroup": {"TestADirectoryIsMade"},
		"emptyDir/Memory":  {"A volume of memory is mounted"},
		"emptyDir/end":     {"A volume goes with its pod"},
	}
	found, err := read(t, sourceOf)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for name, all := range found {
		for _, proof := range all {
			got[name] = append(got[name], proof.test)
		}
	}
	if !maps.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("got %v", got)
	}
}

func TestAMarkerThatIsNotRightAboveATestIsAnError(t *testing.T) {
	for what, source := range map[string]string{
		"an empty line between": "package some_test\n\n//proves:emptyDir/disk\n\nfunc TestIt(t *testing.T) {}\n",
		"a helper":              "package some_test\n\n//proves:emptyDir/disk\nfunc make(t *testing.T) {}\n",
		"a statement":           "package some_test\n\nfunc TestIt(t *testing.T) {\n\t//proves:emptyDir/disk\n\tfail(t)\n}\n",
	} {
		if _, err := read(t, source); err == nil || !strings.Contains(err.Error(), "some_test.go:") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

func TestFilesWithoutMarkersAreNotRead(t *testing.T) {
	if found, err := read(t, "no Go at all"); err != nil || len(found) > 0 {
		t.Errorf("got %v, %v", found, err)
	}
}
