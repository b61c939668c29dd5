package nodemanager

import (
	"os"
	"path/filepath"
	"testing"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
)

// inPod is a path in the directory of the node's pod.
func (n *killedNode) inPod(names ...string) string {
	return filepath.Join(append([]string{n.root(), "pods", string(nodetest.SomePod)}, names...)...)
}

// precious is what the node's host folder holds.
func (n *killedNode) precious(t *testing.T) {
	t.Helper()
	if kept, err := os.ReadFile(n.path("host", "part", "kept")); string(kept) != "precious" {
		t.Fatalf("what lies on the node holds %q (%v)", kept, err)
	}
}

func mustDo(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestNothingIsRemovedWhereSomethingElseLiesThanTheAgentMade(t *testing.T) {
	mounttest.NeedsRoot(t)
	tests := map[string]func(*killedNode) (at string, err error){
		"a symlink for the folder of a volume type": func(n *killedNode) (string, error) {
			at := n.inPod("volumes", "kubernetes.io~empty-dir")
			return at, os.Symlink(n.path("host"), at)
		},
		"a symlink for the folder of volumes": func(n *killedNode) (string, error) {
			return n.inPod("volumes"), os.Symlink(n.path(), n.inPod("volumes"))
		},
		"a symlink for the folder of a pod": func(n *killedNode) (string, error) {
			return n.inPod(), os.Symlink(n.path("like-a-pod"), n.inPod())
		},
		"a file for the folder of volumes": func(n *killedNode) (string, error) {
			return n.inPod("volumes"), os.WriteFile(n.inPod("volumes"), nil, 0o600)
		},
		"a file for the folder of a pod": func(n *killedNode) (string, error) {
			return n.inPod(), os.WriteFile(n.inPod(), nil, 0o600)
		},
		"a file beside volumes": func(n *killedNode) (string, error) {
			return n.inPod("stray"), os.WriteFile(n.inPod("stray"), nil, 0o600)
		},
		"a symlink for the folder of containers": func(n *killedNode) (string, error) {
			return n.inPod("containers"), os.Symlink(n.path("host"), n.inPod("containers"))
		},
		"a symlink for the folder of parts": func(n *killedNode) (string, error) {
			return n.inPod("volume-subpaths"), os.Symlink(n.path("host"), n.inPod("volume-subpaths"))
		},
	}
	for name, put := range tests {
		t.Run(name, func(t *testing.T) {
			n := newKilledNode(t, "emptyDir")
			mustDo(t, os.MkdirAll(n.path("like-a-pod", "volumes", "kubernetes.io~empty-dir"), 0o700),
				os.Symlink(n.path("host"), n.path("like-a-pod", "volumes", "kubernetes.io~empty-dir", "data")),
				os.MkdirAll(filepath.Dir(n.inPod()), 0o700), os.MkdirAll(n.path("agent", "plugins", "kubernetes.io", "csi"), 0o750),
				os.MkdirAll(n.path("agent", "staged", "local"), 0o750), os.MkdirAll(n.path("agent", "staged", stowagev1alpha1.GCEDriver), 0o750),
				os.MkdirAll(n.path("agent", "staged", stowagev1alpha1.NFSDriver), 0o750), os.MkdirAll(n.path("agent", "nfs"), 0o750))
			// What lies deeper has the folders that it needs.
			at, err := put(n)
			if err != nil {
				mustDo(t, os.MkdirAll(filepath.Dir(at), 0o700))
				at, err = put(n)
				mustDo(t, err)
			}
			before := n.look(t)

			n.Leaves = true
			if err := n.settle(t.Context()); err == nil {
				t.Error("it settles, and reports nothing")
			}

			n.mustBe(t, before, "after a teardown")
			n.precious(t)
			mustDo(t, os.Remove(at))
		})
	}
}

func TestWhatWasWrittenDownOfAContainerIsMendedWhateverBecameOfIt(t *testing.T) {
	mounttest.NeedsRoot(t)
	tests := map[string]func(n *killedNode, record string) error{
		"garbage":   func(_ *killedNode, record string) error { return os.WriteFile(record, []byte("garbage"), 0o600) },
		"nothing":   func(_ *killedNode, record string) error { return os.Truncate(record, 0) },
		"no record": func(_ *killedNode, record string) error { return os.Remove(record) },
		"a symlink": func(n *killedNode, record string) error {
			if err := os.Remove(record); err != nil {
				return err
			}
			return os.Symlink(n.path("host", "part", "kept"), record)
		},
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			n := newKilledNode(t, "secret")
			should := n.learn(t)
			n.Version, n.Leaves = 1, false
			n.mustSettle(t, "at the start")
			mustDo(t, spoil(n, n.inPod("containers", "main", "mounts.json")))

			n.mustSettle(t, "spoilt")

			n.mustBe(t, should.shown[1], "spoilt")
			n.precious(t)
		})
	}
}
