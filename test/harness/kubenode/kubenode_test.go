package kubenode

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"text/template"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/stowage-dev/stowage/test/harness/guest"
)

// fake is a host that does nothing.
type fake struct{ address string }

func (fake) Call(context.Context, string, any, any) error                      { return nil }
func (fake) CallWithin(context.Context, time.Duration, string, any, any) error { return nil }
func (f fake) Address() string                                                 { return f.address }
func (fake) Path(machine string) string                                        { return "/seen" + machine }
func (fake) Logs() string                                                      { return "/logs" }
func (fake) Disk() (string, error)                                             { return "/dev/disk", nil }

func testCluster() Cluster {
	return Cluster{
		Name: "run-1", Kubelet: "/kubelet", Pause: "localhost/pause:1",
		Kubeconfig: func(node string) (string, error) { return "/" + node, nil },
		Folders:    map[string]string{"/run/cloud": "/tmp/cloud"},
	}
}

func TestAGuestHasItsKernelForItself(t *testing.T) {
	node, err := testCluster().node(1, Member{"node1", fake{"10.99.1.2"}})
	if err != nil {
		t.Fatal(err)
	}
	got := node.settings
	if got.SharedKernel || len(got.Modules) == 0 || got.Cgroup != "/pods" || got.PodNetwork != "10.244.1.0/24" {
		t.Errorf("its settings are %+v", got)
	}
	if got.Kubelet != "/seen/kubelet" || got.Kubeconfig != "/seen/node1" || got.Folders["/run/cloud"] != "/seen/tmp/cloud" {
		t.Errorf("it doesn't see the machine's files: %+v", got)
	}
}

func TestTheMachineSharesItsKernel(t *testing.T) {
	node, err := testCluster().node(0, Member{"machine", fake{guest.Address}})
	if err != nil {
		t.Fatal(err)
	}
	if got := node.settings; !got.SharedKernel || got.Modules != nil || got.Cgroup != "/run-1" {
		t.Errorf("its settings are %+v", got)
	}
}

func TestWhatVarWouldHideIsRefused(t *testing.T) {
	if err := checkPaths(Settings{Kubelet: "/var/lib/ci/kubelet"}); err == nil || !strings.Contains(err.Error(), "/var/lib/ci/kubelet") {
		t.Errorf("got %v", err)
	}
	if err := checkPaths(Settings{Kubelet: "/home/ci/kubelet", Logs: "/run/logs"}); err != nil {
		t.Error(err)
	}
}

func TestConfigurationIsComplete(t *testing.T) {
	settings := Settings{ProviderID: "gce://project/zone/node1", Cgroup: "/pods", Pause: "pause", PodNetwork: "10.244.1.0/24", ClientAuthority: "/ca"}
	all, err := template.ParseFS(templates, "templates/*")
	if err != nil {
		t.Fatal(err)
	}
	for name := range files {
		var text bytes.Buffer
		if err := all.Lookup(name).Execute(&text, settings); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if strings.HasSuffix(name, ".toml") {
			continue
		}
		if err := yaml.UnmarshalStrict(text.Bytes(), &map[string]any{}); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text.String())
		}
	}
}

func TestNodesKnowEachOtherByName(t *testing.T) {
	got := hosts(map[string]string{"node2": "10.99.2.2", "machine": "10.99.0.1"})
	if want := "127.0.0.1 localhost\n10.99.0.1 machine\n10.99.2.2 node2\n"; got != want {
		t.Errorf("got %q", got)
	}
}

func TestLabelsAreInOrder(t *testing.T) {
	if got := labels(map[string]string{"b": "2", "a": "1"}); got != "a=1,b=2" {
		t.Errorf("got %q", got)
	}
}
