package gce

import (
	"context"
	"sync"
	"time"

	"google.golang.org/api/compute/v1"
	"k8s.io/utils/lru"
)

// remembered is how many changes that failed are remembered. Forgetting one costs a call.
const remembered = 10_000

// target is what calls are about: a project, and those of its zones that disks are made in.
type target struct {
	login
	project string
	zones   []string
}

// key is a version of a service account key; empty where none is named.
type key struct {
	text    []byte
	version string
}

// clients are those that are signed in, with what they share: which changes failed, and the
// operations that calls wait for. All methods can be called at once.
type clients struct {
	limits  limits
	history *lru.Cache
	waiting *waiting

	mu       sync.Mutex
	signedIn map[login]client
}

// client is signed in with a version of a key.
type client struct {
	*compute.Service
	version string
}

func newClients() *clients {
	return &clients{limits: usual, history: lru.New(remembered), waiting: newWaiting(), signedIn: map[login]client{}}
}

// signIn makes what one call to a backend works with. It is signed in anew where the version
// of the key is another one.
func (k *clients) signIn(ctx context.Context, at target, with key) (*cloud, error) {
	known, found := k.known(at.login)
	if !found || known.version != with.version {
		service, err := connect(ctx, at.login, with.text)
		if err != nil {
			return nil, err
		}
		known = client{Service: service, version: with.version}
		k.mu.Lock()
		k.signedIn[at.login] = known
		k.mu.Unlock()
	}
	return &cloud{target: at, compute: known.Service, limits: k.limits, history: k.history, waiting: k.waiting}, nil
}

func (k *clients) known(at login) (known client, found bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, found = k.signedIn[at]
	return known, found
}

// cloud is what one call to a backend works with: a client that is signed in.
type cloud struct {
	target
	compute *compute.Service
	limits  limits
	history *lru.Cache
	waiting *waiting
}

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
