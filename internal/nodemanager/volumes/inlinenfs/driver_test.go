package inlinenfs_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// handle is what a kubelet calls a pod's own volume.
var handle = "csi-" + strings.Repeat("0123456789abcdef", 4)

// staged is a node whose kubelet has a pod's own volume published.
type staged struct{ *node }

func newStaged(t *testing.T) *staged {
	t.Helper()
	n := &staged{newNode(t)}
	n.renew(t, n.servers)
	return n
}

// renew starts an agent again, with a kernel of its own.
func (n *staged) renew(t *testing.T, kernel kernel) {
	t.Helper()
	n.restart(t, kernel)
	n.must(t, os.MkdirAll(filepath.Dir(n.at("pod")), 0o750))
}

// spec is a pod's volume as the kubelet's call says it.
func (n *staged) spec() volumes.Spec {
	spec := n.node.spec("pod-uid")
	spec.Backend = nil
	spec.Volume.Name = handle
	spec.Volume.CSI.VolumeAttributes = map[string]string{stowagev1alpha1.BackendAttribute: "shared"}
	return spec
}

func (n *staged) show(spec volumes.Spec) error {
	return n.driver.PublishInline(context.Background(), spec, handle, n.at("pod"))
}

func (n *staged) hide() error {
	return n.driver.UnpublishInline(context.Background(), handle, n.at("pod"))
}

func (n *staged) must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func (n *staged) folder() string { return n.onServer(".stowage-inline", handle) }

//proves:inline/staging
func TestAFolderIsMountedAtTheKubeletsPathAndGoesWithThePod(t *testing.T) {
	n := newStaged(t)
	for range 2 {
		n.must(t, n.show(n.spec()))
		n.renew(t, n.servers)
	}
	if n.asked != 1 {
		t.Errorf("the backend was asked for %d times", n.asked)
	}
	n.must(t, os.WriteFile(filepath.Join(n.at("pod"), "hello"), []byte("world"), 0o600))
	if text, err := os.ReadFile(filepath.Join(n.folder(), "hello")); string(text) != "world" {
		t.Errorf("the server has %q (%v)", text, err)
	}
	n.must(t, n.driver.Check(t.Context(), handle, n.at("pod")))
	reader := n.spec()
	reader.Access = mount.ReadOnly
	if err := n.show(reader); !errors.Is(err, volumes.ErrOtherVolume) {
		t.Errorf("for reading where it is written, got %v", err)
	}
	// The backend may be gone by then.
	n.backend = nil
	n.must(t, n.hide(), n.hide())
	if _, err := os.Lstat(n.folder()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder: %v", err)
	}
	n.mustBeClean(t)
}

func TestAFolderThatIsOnlyReadIsMountedSo(t *testing.T) {
	n := newStaged(t)
	spec := n.spec()
	spec.Access = mount.ReadOnly
	n.must(t, n.show(spec), n.show(spec))
	if err := os.WriteFile(filepath.Join(n.at("pod"), "hello"), nil, 0o600); err == nil {
		t.Error("it was written")
	}
	n.must(t, n.hide())
	n.mustBeClean(t)
}

//proves:inline/staging
func TestAFolderNeedsABackendThatLetsPodsHaveThem(t *testing.T) {
	refusals := map[string]func(*staged, *volumes.Spec){
		"has no NFS share":           func(n *staged, _ *volumes.Spec) { n.backend.Spec.NFS = nil },
		"doesn't let pods":           func(n *staged, _ *volumes.Spec) { n.backend.Spec.NFS.AllowInline = false },
		"no such StorageBackend":     func(n *staged, _ *volumes.Spec) { n.backend = nil },
		"without a StorageBackend":   func(_ *staged, spec *volumes.Spec) { spec.Volume.CSI.VolumeAttributes = nil },
		`attribute "server" in a po`: func(_ *staged, spec *volumes.Spec) { spec.Volume.CSI.VolumeAttributes["server"] = "192.0.2.9" },
	}
	for says, change := range refusals {
		n := newStaged(t)
		spec := n.spec()
		change(n, &spec)
		if err := n.show(spec); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v", says, err)
		}
		n.must(t, n.hide())
		n.mustBeClean(t)
	}
}

//proves:inline/staging
func TestOnlyTheKubeletsHandlesAreOfPodsOwnVolumes(t *testing.T) {
	n := newStaged(t)
	for _, other := range []string{"pvc-1", "csi-", handle + "0", "csi-../" + handle[7:], strings.ToUpper(handle)} {
		made := n.driver.PublishInline(t.Context(), n.spec(), other, n.at("pod"))
		removed := n.driver.UnpublishInline(t.Context(), other, n.at("pod"))
		if n.driver.IsInline(other) || !errors.Is(made, volumes.ErrInvalid) || !errors.Is(removed, volumes.ErrInvalid) {
			t.Errorf("%q: got %v, %v", other, made, removed)
		}
	}
	n.mustBeClean(t)
}

//proves:inline/staging
func TestAFolderOfAFailingServerIsRemovedLater(t *testing.T) {
	n := newStaged(t)
	n.renew(t, refusing{n.servers, remote.ErrSilent})
	if err := n.show(n.spec()); !errors.Is(err, remote.ErrSilent) {
		t.Errorf("making it: %v", err)
	}
	n.renew(t, n.servers)
	n.must(t, n.show(n.spec()))
	n.renew(t, refusing{n.servers, remote.ErrSilent})
	for range 2 {
		if err := n.hide(); !errors.Is(err, remote.ErrSilent) {
			t.Errorf("removing it: %v", err)
		}
	}
	n.renew(t, n.servers)
	n.must(t, n.hide())
	n.mustBeClean(t)
}

//proves:inline/staging
func TestAFolderIsNotRemovedWhileItIsMountedElsewhere(t *testing.T) {
	n := newStaged(t)
	n.must(t, n.show(n.spec()), os.WriteFile(filepath.Join(n.folder(), "hello"), nil, 0o600))
	if err := n.driver.UnpublishInline(t.Context(), handle, n.at("other")); !errors.Is(err, volumes.ErrInUse) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(filepath.Join(n.folder(), "hello")); err != nil {
		t.Error(err)
	}
	n.must(t, n.hide())
	n.mustBeClean(t)
}

//proves:inline/staging
func TestAfterARebootAFolderIsMountedAgainOrRemoved(t *testing.T) {
	for _, again := range []bool{true, false} {
		n := newStaged(t)
		n.must(t, n.show(n.spec()), os.WriteFile(filepath.Join(n.folder(), "hello"), nil, 0o600))
		n.must(t, mount.UnmountBelow(mount.Kernel{}, n.dir))
		n.renew(t, n.servers)
		if again {
			n.must(t, n.show(n.spec()))
			if _, err := os.Lstat(filepath.Join(n.at("pod"), "hello")); err != nil {
				t.Error(err)
			}
		}
		n.must(t, n.hide())
		n.mustBeClean(t)
	}
}
