// Package volumes_test keeps docs/volumes.md in step with the tests. Its prose is a template in
// testdata. What it says of volume types is proved by tests, which are found in the sources by the
// markers above them:
//
//	//proves:emptyDir/Memory
//	func TestAnEmptyDirInMemoryIsThereOnlyWhenItIsMounted(t *testing.T) {
//
// The page may say nothing that no test is marked with, each marker names something on the page, and
// the page has each volume type of the Kubernetes API.
package volumes_test

import (
	_ "embed"
	"flag"
	"os"
	"testing"

	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
)

// page is written, and sources are the folders whose tests count, from the top folder.
const page = "docs/volumes.md"

var sources = []string{"cmd", "internal", "test"}

//go:embed testdata/volumes.md.tmpl
var prose string

var update = flag.Bool("update", false, "write docs/volumes.md")

func TestThePageOfVolumeTypesIsCurrent(t *testing.T) {
	t.Chdir("../..")
	found, err := findProofs(sources)
	if err != nil {
		t.Fatal(err)
	}
	text, err := newDocument(found, resolve.InsteadOf()).render(prose)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if written, err := os.ReadFile(page); err != nil || string(written) != text {
		t.Errorf("%s is stale: run go test ./test/volumes -update (%v)", page, err)
	}
}
