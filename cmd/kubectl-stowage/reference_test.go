package main

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
	"github.com/stowage-dev/stowage/test/harness/page"
)

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
	page.Flags(t, "kubectl-stowage", flags.String())
}
