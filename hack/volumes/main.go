// Command volumes writes docs/volumes.md, for `make generate`. Its prose is the template
// beside this file. What it says of volume types is proved by tests, which are found in
// the sources by the markers above them:
//
//	//proves:emptyDir/Memory
//	func TestAnEmptyDirInMemoryIsThereOnlyWhenItIsMounted(t *testing.T) {
//
// It fails where the document says what no test is marked with, where a marker names
// nothing in the document, and where a volume type of the Kubernetes API is missing.
package main

import (
	_ "embed"
	"fmt"
	"os"

	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
)

// target is what is written, and sources are the folders whose tests count. The program
// runs in the repository's top folder.
const target = "docs/volumes.md"

var sources = []string{"cmd", "internal", "test"}

//go:embed volumes.md.tmpl
var prose string

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "volumes: writing %s: %v\n", target, err)
		os.Exit(1)
	}
}

func run() error {
	found, err := findProofs(sources)
	if err != nil {
		return err
	}
	text, err := newDocument(found, resolve.InsteadOf()).render(prose)
	if err != nil {
		return err
	}
	return os.WriteFile(target, []byte(text), 0o644)
}
