package cloud

import (
	"context"
	"sync"
	"time"

	"google.golang.org/api/compute/v1"
	"k8s.io/utils/lru"

	"github.com/stowage-dev/stowage/internal/backend/gce/transport"
)

// remembered is how many changes that failed are remembered. Forgetting one costs a call.
const maxHistory = 10_000

// Target is what calls are about: a project, and those of its zones that disks are made in.
type Target struct {
	transport.Login
	Project string
	Zones   []string
}

// Key is a version of a service account key; empty where none is named.
type Key struct {
	// Text is the key as Google gives it out.
	Text []byte
	// Version is another one once the key is.
	Version string
}

// Clients are those that are signed in, with what they share: which changes failed, and the
// operations that calls wait for. All methods can be called at once.
type Clients struct {
	// Limits hold for clients that sign in from now on.
	Limits  Limits
	history *lru.Cache
	poller  *poller

	mu       sync.Mutex
	signedIn map[transport.Login]session
}

// session is signed in with a version of a key.
type session struct {
	*compute.Service
	version string
}

// NewClients makes clients none of which is signed in yet.
func NewClients() *Clients {
	return &Clients{Limits: defaultLimits, history: lru.New(maxHistory), poller: newPoller(), signedIn: map[transport.Login]session{}}
}

// SignIn makes what one call to a backend works with. It is signed in anew where the version
// of the key is another one.
func (k *Clients) SignIn(ctx context.Context, at Target, with Key) (*Client, error) {
	known, found := k.known(at.Login)
	if !found || known.version != with.Version {
		service, err := transport.Connect(ctx, at.Login, with.Text)
		if err != nil {
			return nil, err
		}
		known = session{Service: service, version: with.Version}
		k.mu.Lock()
		k.signedIn[at.Login] = known
		k.mu.Unlock()
	}
	return &Client{Target: at, compute: known.Service, limits: k.Limits, history: k.history, poller: k.poller}, nil
}

func (k *Clients) known(at transport.Login) (known session, found bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, found = k.signedIn[at]
	return known, found
}

// Client is what one call to a backend works with: a client that is signed in.
type Client struct {
	Target
	compute *compute.Service
	limits  Limits
	history *lru.Cache
	poller  *poller
}

// Limits are how long things may take, and how much is asked for at once.
type Limits struct {
	// Call is until one call is answered, Operation until a caller is told that an
	// operation goes on.
	Call, Operation time.Duration
	// Poll is how often is asked how far operations are.
	Poll time.Duration
	// Page is how many disks or instances are listed at once.
	Page int64
}

// usual limits: a call takes a second, making or attaching a disk some ten.
var defaultLimits = Limits{Call: 30 * time.Second, Operation: 30 * time.Second, Poll: 500 * time.Millisecond, Page: 500}
