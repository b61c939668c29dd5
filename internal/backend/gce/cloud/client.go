// Package cloud is Google's Compute API as the gce backend uses it. It signs in, reads disks and
// instances, makes changes of them, and waits for operations.
//
// A change is requested with a computed request id, so a repeat joins the operation in progress:
// after a crash, and from a second leader. Package reason says why something was refused. The
// package knows no StorageBackend and no owner of a disk: its caller, internal/backend/gce,
// decides whether a disk may be changed.
package cloud

import (
	"context"
	"sync"
	"time"

	"google.golang.org/api/compute/v1"
	"k8s.io/utils/lru"

	"github.com/stowage-dev/stowage/internal/backend/gce/operations"
	"github.com/stowage-dev/stowage/internal/backend/gce/reason"
	"github.com/stowage-dev/stowage/internal/backend/gce/transport"
)

// maxHistory is how many failed changes are remembered. Forgetting one costs a call.
const maxHistory = 10_000

// Target is a project, and the zones in which disks are made.
type Target struct {
	transport.Login
	Project string
	Zones   []string
}

// Caller is what signs in, as errors name it.
func (t Target) Caller() reason.Caller {
	return reason.Caller{Project: t.Project, Credentials: t.Credentials()}
}

// Key is a version of a service account key; empty where none is named.
type Key struct {
	// Text is the key as Google gives it out.
	Text []byte
	// Version changes with the key.
	Version string
}

// Clients keeps the clients that are signed in, and what they share: the changes that failed, and
// the operations that calls wait for. All methods can be called at once.
type Clients struct {
	// Limits apply to clients that sign in from now on.
	Limits  Limits
	history *lru.Cache
	poller  *operations.Poller

	mu       sync.Mutex
	signedIn map[transport.Login]session
}

// session is signed in with a version of a key.
type session struct {
	*compute.Service
	version string
}

// NewClients makes Clients of which none is signed in yet.
func NewClients() *Clients {
	return &Clients{Limits: defaultLimits, history: lru.New(maxHistory), poller: operations.NewPoller(), signedIn: map[transport.Login]session{}}
}

// SignIn makes the Client of one call to a backend. It signs in again when the key's version
// changes.
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

// Polled is the number of zones in which calls wait for operations, and one more for those in none.
func (k *Clients) Polled() int { return k.poller.Polled() }

func (k *Clients) known(at transport.Login) (known session, found bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, found = k.signedIn[at]
	return known, found
}

// Client serves one call to a backend: it is signed in.
type Client struct {
	Target
	compute *compute.Service
	limits  Limits
	history *lru.Cache
	poller  *operations.Poller
}

// Limits bound how long calls may take, and how much one call lists.
type Limits struct {
	// Call bounds one call to the API, Operation the time until a caller gets InProgress.
	Call, Operation time.Duration
	// Poll is the interval at which operations are listed.
	Poll time.Duration
	// Page is how many disks or instances one page lists.
	Page int64
}

// defaultLimits: a call takes about a second, making or attaching a disk about ten.
var defaultLimits = Limits{Call: 30 * time.Second, Operation: 30 * time.Second, Poll: 500 * time.Millisecond, Page: 500}
