package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
)

var update = flag.Bool("update", false, "write the flags into docs/reference/flags.md")

func TestThePageOfFlagsIsCurrent(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBECACHEDIR", "$HOME/.kube/cache")
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	command := root(cluster.New(streams))
	const width = 100
	var flags strings.Builder
	for _, verb := range command.Commands() {
		if usage := verb.LocalNonPersistentFlags().FlagUsagesWrapped(width); usage != "" {
			fmt.Fprintf(&flags, "\nOf `kubectl stowage %s`:\n\n```text\n%s```\n", verb.Name(), usage)
		}
	}
	fmt.Fprintf(&flags, "\nOf all verbs:\n\n```text\n%s```\n", command.PersistentFlags().FlagUsagesWrapped(width))

	const page, begin, end = "../../docs/reference/flags.md", "<!-- kubectl-stowage: go test ./cmd/kubectl-stowage -update -->\n", "<!-- end of kubectl-stowage -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, began := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !began || !ended {
		t.Fatalf("%s lacks the lines %s and %s", page, begin, end)
	}
	want := before + begin + flags.String() + end + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("%s is stale: run go test ./cmd/kubectl-stowage -update", page)
	}
}
