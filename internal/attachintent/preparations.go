package attachintent

import (
	"maps"
	"sync"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
)

// Moment is how long a Preparation proves anything. A manager that was paused in between may lead no
// more, and others may have acted on its attachments: it reads live.
const Moment = time.Second

// Preparations are the attachments that this process prepared within the last moment. Writes drop
// what is older. It is safe for concurrent use.
type Preparations struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	made  map[types.UID]Preparation
	swept time.Time
}

// Preparation is a write that prepared an attachment.
type Preparation struct {
	uid types.UID
	// version is the resourceVersion that the attachment got.
	version string
	// began is when the write was sent.
	began time.Time
}

// NewPreparations returns none.
func NewPreparations(clock clock.PassiveClock) *Preparations {
	return &Preparations{clock: clock, made: map[types.UID]Preparation{}}
}

// By calls write, which creates or changes an attachment, and remembers it if it succeeds.
func (p *Preparations) By(attachment *storagev1.VolumeAttachment, write func() error) error {
	began := p.clock.Now()
	if err := write(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.clock.Now(); now.Sub(p.swept) > Moment {
		maps.DeleteFunc(p.made, func(_ types.UID, made Preparation) bool { return !made.IsRecent(now) })
		p.swept = now
	}
	p.made[attachment.UID] = Preparation{uid: attachment.UID, version: attachment.ResourceVersion, began: began}
	return nil
}

// Take returns the write that prepared an attachment, and forgets it. It reports false if this process
// made none within the last moment, or it was taken.
func (p *Preparations) Take(attachment *storagev1.VolumeAttachment) (Preparation, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	made, found := p.made[attachment.UID]
	delete(p.made, attachment.UID)
	return made, found && made.IsRecent(p.clock.Now())
}

// IsRecent reports whether the write was sent within the last moment, by the clock on the wall, too: the
// other one stops while a machine is suspended.
func (p Preparation) IsRecent(now time.Time) bool {
	return isShort(now.Sub(p.began)) && isShort(now.Round(0).Sub(p.began.Round(0)))
}

func isShort(passed time.Duration) bool { return passed >= 0 && passed <= Moment }

// ShownBy reports whether an object is the attachment as the write made it, or later.
func (p Preparation) ShownBy(object *storagev1.VolumeAttachment) bool {
	order, err := resourceversion.CompareResourceVersion(object.ResourceVersion, p.version)
	return object.UID == p.uid && err == nil && order >= 0
}
