package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the flags into docs/reference/flags.md")

func TestThePageOfFlagsIsCurrent(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("NODE_NAME", "")
	flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	flags.SortFlags = false
	(&options{}).addFlags(flags)
	const page, begin, end = "../../docs/reference/flags.md", "<!-- manager: go test ./cmd/manager -update -->\n", "<!-- end of manager -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, began := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !began || !ended {
		t.Fatalf("%s lacks the lines %s and %s", page, begin, end)
	}
	want := before + begin + "```text\n" + flags.FlagUsagesWrapped(100) + "```\n" + end + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("%s is stale: run go test ./cmd/manager -update", page)
	}
}
