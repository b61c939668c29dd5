package nfs

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/copying"
	"github.com/stowage-dev/stowage/internal/backend/nfs/mounted"
	"github.com/stowage-dev/stowage/internal/backend/nfs/nfs3"
	nfsshare "github.com/stowage-dev/stowage/internal/backend/nfs/share"
	"github.com/stowage-dev/stowage/internal/backend/nfs/snapshots"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// defaultLimits suit a server that answers in milliseconds, and takes a while to remove files.
var defaultLimits = nfsshare.Limits{Call: 10 * time.Second, Operation: time.Minute, SlotWait: 30 * time.Second, Parallel: 16}

// Kind makes NFS backends, and keeps what they share: connections and slots.
type Kind struct {
	cluster types.UID
	mounts  string
	limits  nfsshare.Limits

	mu      sync.Mutex
	servers map[string]*server
	clients map[endpoint]*nfs3.Client
}

// server is what all backends on one server share.
type server struct {
	nfsshare.Server
	// copies are those of this process: a share may have several backends.
	copies copying.Copier
}

// endpoint is where a server is reached.
type endpoint struct {
	server          string
	port, mountPort int
}

// NewKind makes the kind for a cluster, whose identity is the UID of its namespace
// kube-system. Below the folder mounts, if any, the share of a backend can be
// mounted under the backend's name; the others are reached by nfs3.
func NewKind(cluster types.UID, mounts string) *Kind {
	return &Kind{
		cluster: cluster, mounts: mounts, limits: defaultLimits,
		servers: map[string]*server{}, clients: map[endpoint]*nfs3.Client{},
	}
}

// Type is NFS.
func (*Kind) Type() stowagev1alpha1.BackendType { return stowagev1alpha1.NFSType }

// Open makes the backend of one StorageBackend object.
func (k *Kind) Open(object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	if k.cluster == "" {
		return nil, backend.Unavailable.Errorf("the identity of this cluster isn't known, so volumes can't be distinguished from those of others: " +
			"let the manager read the namespace kube-system")
	}
	spec, err := settingsFrom(*object.Spec.NFS)
	if err != nil {
		return nil, err
	}
	return &nfsBackend{
		name: object.Name, cluster: string(k.cluster), spec: spec, share: k.share(object.Name, spec),
		snapshots: snapshots.Keeper{Cluster: string(k.cluster), Backend: object.Name, Copier: &k.server(spec.server).copies, Slice: copySlice},
	}, nil
}

func (k *Kind) share(name string, spec settings) *nfsshare.Share {
	opened := &nfsshare.Share{Server: &k.server(spec.server).Server, Slice: removalSlice}
	if k.mounts != "" && isThere(k.mounts, name) {
		path := filepath.Join(k.mounts, name)
		opened.Uninterruptible = true
		opened.Open = func(context.Context) (tree.Dir, error) { return mounted.Open(path) }
		return opened
	}
	client := k.client(spec)
	opened.Open = func(ctx context.Context) (tree.Dir, error) { return client.Open(ctx, spec.path) }
	return opened
}

// server is shared by all backends on it.
func (k *Kind) server(name string) *server {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.servers[name] == nil {
		k.servers[name] = &server{Server: nfsshare.Server{Name: name, Slots: make(chan struct{}, k.limits.Parallel), Limits: k.limits}}
	}
	return k.servers[name]
}

func (k *Kind) client(spec settings) *nfs3.Client {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := endpoint{spec.server, spec.port, spec.mountPort}
	if k.clients[at] == nil {
		k.clients[at] = nfs3.NewClient(spec.server, nfs3.Options{Port: spec.port, MountPort: spec.mountPort, CallTimeout: k.limits.Call})
	}
	return k.clients[at]
}

// isThere reports whether a folder has an entry with a name. It doesn't stat the entry: if that is a
// mount, the call would wait for a silent server.
func isThere(folder, name string) bool {
	entries, err := os.ReadDir(folder)
	return err == nil && slices.ContainsFunc(entries, func(entry os.DirEntry) bool { return entry.Name() == name })
}
