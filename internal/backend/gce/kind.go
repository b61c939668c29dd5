package gce

import (
	"context"
	"sync"
	"time"

	"google.golang.org/api/compute/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// limits are how long things may take, and how much is asked for at once.
type limits struct {
	// call is until one call is answered, operation until a caller is told that an
	// operation goes on.
	call, operation time.Duration
	// poll is how often is asked how far operations are.
	poll time.Duration
	// page is how many disks or instances are listed at once.
	page int64
}

// usual limits: a call takes a second, making or attaching a disk some ten.
var usual = limits{call: 30 * time.Second, operation: 30 * time.Second, poll: 500 * time.Millisecond, page: 500}

// remembered is how many changes that failed are remembered. Forgetting one costs a call.
const remembered = 10_000

// Keys reads the service account keys that backends name.
type Keys interface {
	// Key returns the key in a Secret, and a word that changes when the Secret does: soon
	// after it did. An error of kind Unavailable tells what an administrator has to do.
	Key(ctx context.Context, secret string) (key []byte, version string, err error)
}

// Kind makes GCE backends, and keeps what they share: who is signed in where, and which
// changes failed.
type Kind struct {
	cluster types.UID
	keys    Keys
	limits  limits
	history *lru.Cache
	waiting *waiting

	mu      sync.Mutex
	clients map[login]client
}

// login is where, and as whom, somebody signs in.
type login struct{ endpoint, secret string }

// client is signed in with a version of a key.
type client struct {
	*compute.Service
	version string
}

// NewKind makes the kind for a cluster, whose identity is the UID of its namespace
// kube-system.
func NewKind(cluster types.UID, keys Keys) *Kind {
	return &Kind{cluster: cluster, keys: keys, limits: usual, history: lru.New(remembered), waiting: newWaiting(), clients: map[login]client{}}
}

// Type is GCE.
func (*Kind) Type() stowagev1alpha1.BackendType { return stowagev1alpha1.GCEType }

// Open makes the backend of one StorageBackend object.
func (k *Kind) Open(object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	if k.cluster == "" {
		return nil, backend.Unavailable.Errorf("the identity of this cluster isn't known, so that disks can't be told from those of others: " +
			"let the manager read the namespace kube-system")
	}
	spec, err := settingsFrom(*object.Spec.GCE)
	if err != nil {
		return nil, err
	}
	return &gceBackend{kind: k, name: object.Name, cluster: string(k.cluster), spec: spec}, nil
}

// signIn makes what one call to the backend works with. The key is asked for each
// time, so that a new one holds from then on, and one that was taken away for none.
func (k *Kind) signIn(ctx context.Context, spec settings) (*cloud, error) {
	var key []byte
	var version string
	if spec.secret != "" {
		var err error
		if key, version, err = k.keys.Key(ctx, spec.secret); err != nil {
			return nil, err
		}
	}
	at := login{spec.endpoint, spec.secret}
	known, found := k.client(at)
	if !found || known.version != version {
		service, err := connect(ctx, spec, key)
		if err != nil {
			return nil, err
		}
		known = client{Service: service, version: version}
		k.mu.Lock()
		k.clients[at] = known
		k.mu.Unlock()
	}
	return &cloud{compute: known.Service, project: spec.project, zones: spec.zones, limits: k.limits, history: k.history, waiting: k.waiting}, nil
}

func (k *Kind) client(at login) (known client, found bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, found = k.clients[at]
	return known, found
}
