package main

import (
	"strings"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
	"github.com/stowage-dev/stowage/internal/kubectl/kubectltest"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// run runs the plug-in with a pod db and a volume v, and returns what it prints.
func run(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	c := cluster.New(streams)
	c.Open = func() (client.Client, error) { return kubectltest.Client(Pod("db", ""), Volume("v")), nil }
	command := root(c)
	command.SetArgs(append(arguments, "--namespace=default"))
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

func TestEveryVerbHasHelpWithExamples(t *testing.T) {
	for _, verb := range []string{"explain", "status", "list", "undelete", "audit", "doctor", "collect"} {
		help, err := run(t, verb, "--help")
		if err != nil || !strings.Contains(help, "kubectl stowage "+verb) || !strings.Contains(help, "Examples:\n  # ") {
			t.Errorf("%v: %s", err, help)
		}
	}
}

func TestNamesOfObjectsAreCompleted(t *testing.T) {
	for _, test := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"explain", ""}, "pod\npvc\npv\n"},
		{[]string{"explain", "pod", "d"}, "db\n"},
		{[]string{"explain", "pv", ""}, "v\n"},
		{[]string{"undelete", "v"}, "v\nvolumesnapshotcontent/\n"},
		{[]string{"undelete", "volumesnapshotcontent/u"}, "volumesnapshotcontent/undeletable-1\n"},
		{[]string{"undelete", "x"}, ":4\n"},
		{[]string{"list", "--output", ""}, "wide\njson\nyaml\n"},
	} {
		streams, _, out, _ := genericiooptions.NewTestIOStreams()
		c := cluster.New(streams)
		c.Open = func() (client.Client, error) {
			return kubectltest.Client(Pod("db", ""), Volume("v"), &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "undeletable-1"}}), nil
		}
		*c.Flags.Namespace = "default"
		command := root(c)
		command.SetArgs(append([]string{"__complete"}, test.arguments...))
		if err := command.Execute(); err != nil || !strings.HasPrefix(out.String(), test.want) {
			t.Errorf("%v: want %q, got %v %q", test.arguments, test.want, err, out)
		}
	}
}

func TestAWrongVerbIsRefused(t *testing.T) {
	if _, err := run(t, "bogus"); err == nil || !strings.Contains(err.Error(), `unknown command "bogus" for "kubectl stowage"`) {
		t.Errorf("got %v", err)
	}
}
