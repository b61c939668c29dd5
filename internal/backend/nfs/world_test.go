package nfs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/nfs/nfstest"
)

const (
	thisCluster  = types.UID("cluster-1")
	otherCluster = types.UID("cluster-2")
	patience     = 2 * time.Minute
)

// world is a share on a server in this process, with a canary beside it.
type world struct {
	folder string
	server *nfstest.Server
	proxy  *nfstest.Proxy
	kind   *Kind
	spec   stowagev1alpha1.NFSBackend
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{folder: besideCanary(t), kind: newKind(t, thisCluster, "")}
	var err error
	w.server, err = nfstest.Serve(w.folder)
	must(t, err)
	t.Cleanup(w.server.Close)
	w.proxy, err = nfstest.NewProxy(w.server.Port())
	must(t, err)
	t.Cleanup(w.proxy.Close)
	w.spec = stowagev1alpha1.NFSBackend{
		Server: nfstest.Host, Path: nfstest.Share, MountOptions: nfstest.Ports(w.proxy.Port()),
		Access: stowagev1alpha1.NFSAccess{UID: int64(os.Getuid()), GID: int64(os.Getgid()), Mode: "0751"},
	}
	return w
}

// newKind makes a kind with connections that end with the test.
func newKind(t *testing.T, cluster types.UID, mounts string) *Kind {
	t.Helper()
	kind := NewKind(cluster, mounts)
	t.Cleanup(func() {
		for _, client := range kind.clients {
			client.Close()
		}
	})
	return kind
}

// open makes the world's backend.
func (w *world) open(t *testing.T, options ...func(*stowagev1alpha1.NFSBackend)) *nfsBackend {
	t.Helper()
	return w.openAs(t, w.kind, options...)
}

func (w *world) openAs(t *testing.T, kind *Kind, options ...func(*stowagev1alpha1.NFSBackend)) *nfsBackend {
	t.Helper()
	spec := w.spec
	for _, option := range options {
		option(&spec)
	}
	object := &stowagev1alpha1.StorageBackend{Spec: stowagev1alpha1.StorageBackendSpec{NFS: &spec}}
	object.Name = "share"
	opened, err := kind.Open(object)
	must(t, err)
	made, isNFS := opened.(*nfsBackend)
	if !isNFS {
		t.Fatalf("opening made a %T", opened)
	}
	return made
}

// has reports whether a path below the share exists.
func (w *world) has(path string) bool {
	_, err := os.Lstat(filepath.Join(w.folder, path))
	return err == nil
}

// put writes a file, and the directories on the way.
func (w *world) put(t *testing.T, path, data string) {
	t.Helper()
	full := filepath.Join(w.folder, path)
	must(t, os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(data), 0o600))
}

func (w *world) mustHave(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if !w.has(path) {
			t.Errorf("%s isn't there", path)
		}
	}
}

func (w *world) mustLack(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if w.has(path) {
			t.Errorf("%s is there", path)
		}
	}
}

// besideCanary makes the folder of a share, with a canary that no test may touch.
func besideCanary(t *testing.T) string {
	t.Helper()
	top := t.TempDir()
	folder, canary := filepath.Join(top, "share"), filepath.Join(top, "canary", "data")
	must(t, os.Mkdir(folder, 0o755), os.Mkdir(filepath.Dir(canary), 0o755), os.WriteFile(canary, []byte("alive"), 0o600))
	t.Cleanup(func() {
		beside, err := os.ReadDir(top)
		if data, read := os.ReadFile(canary); string(data) != "alive" || len(beside) != 2 {
			t.Errorf("beside the share there is %v, %v, and the canary says %q, %v", beside, err, data, read)
		}
	})
	return folder
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func mustProvision(t *testing.T, on backend.Backend, request backend.Request) *backend.Volume {
	t.Helper()
	made, err := on.Provision(t.Context(), request)
	must(t, err)
	return made
}

// requestFor is a request by a claim of this namespace, name and uid.
func requestFor(namespace, name, uid string) backend.Request {
	request := backendtest.Request(uid)
	request.Claim.Namespace, request.Claim.Name = namespace, name
	return request
}

func template(text string) func(*stowagev1alpha1.NFSBackend) {
	return func(spec *stowagev1alpha1.NFSBackend) { spec.DirectoryTemplate = text }
}

func onDelete(what stowagev1alpha1.NFSDeletion) func(*stowagev1alpha1.NFSBackend) {
	return func(spec *stowagev1alpha1.NFSBackend) { spec.OnDelete = what }
}
