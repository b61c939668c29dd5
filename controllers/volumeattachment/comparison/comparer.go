package comparison

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/drivers"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/opener"
)

// defaultAttachmentCheck is the default interval of comparisons.
const defaultAttachmentCheck = time.Minute

// Comparer compares the attachments in a backend with the VolumeAttachments. A volume that was
// detached elsewhere is attached again. A dangling attachment gets an event, and is detached
// once its node has released it.
type Comparer struct {
	client   client.Client
	live     client.Reader
	shared   liveread.Reads
	storage  *opener.Opener
	interval time.Duration
	clock    clock.PassiveClock
	events   events.EventRecorder
	// failed has the last events about failed comparisons.
	failed  event.Last
	drivers drivers.Drivers

	mu sync.Mutex
	// seen is since when dangling attachments are seen, by backend.
	seen map[string]map[backend.Attached]firstSeen
	// missing are the attachments that the last list of a backend of kind csi didn't have.
	missing map[string]map[types.UID]bool
}

// New makes the comparer.
func New(deps reconciler.Dependencies) *Comparer {
	interval := deps.AttachmentCheckInterval
	if interval <= 0 {
		interval = defaultAttachmentCheck
	}
	return &Comparer{
		client:   deps.Client,
		live:     deps.Live,
		shared:   deps.Reads,
		storage:  deps.Storage,
		drivers:  drivers.New(deps.Client),
		interval: interval,
		clock:    deps.Clock,
		events:   deps.Events,
	}
}

// firstSeen is when a dangling attachment was first seen, and whether it was seen before.
type firstSeen struct {
	since time.Time
	again bool
}
