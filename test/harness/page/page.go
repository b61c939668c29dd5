// Package page keeps parts of the documents in step with the code. With the flag -update, the test that
// checks a part writes it.
package page

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

var update = flag.Bool("update", false, "write the part of the document that the test checks")

// Flags fails unless docs/reference/flags.md has this text for a program of cmd.
func Flags(t *testing.T, program, text string) {
	t.Helper()
	const page = "docs/reference/flags.md"
	path, command := filepath.Join(apiserver.Repository(), page), "go test ./cmd/"+program+" -update"
	begin, end := "<!-- "+program+": "+command+" -->\n", "<!-- end of "+program+" -->\n"
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, began := strings.Cut(string(written), begin)
	_, after, ended := strings.Cut(rest, end)
	if !began || !ended {
		t.Fatalf("%s lacks the lines %s and %s", page, begin, end)
	}
	want := before + begin + text + end + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(written) {
		t.Errorf("%s is stale: run %s", page, command)
	}
}
