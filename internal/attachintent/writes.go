package attachintent

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
)

const (
	// Moment is how long a Write proves anything. A manager that was paused in between may lead no
	// more, and others may have acted on its attachments: it reads live.
	Moment = time.Second
	// LongMoment is the same in a process that certainly leads: no other one acted since it began to.
	LongMoment = 10 * time.Second
)

// Writes are those that this process sent to attachments within the last moment, the last one of each. Later
// ones drop what is older. It is safe for concurrent use.
type Writes struct {
	clock clock.PassiveClock
	leads func() bool

	mu    sync.Mutex
	sent  map[types.UID]Write
	swept time.Time
}

// Write is a write to an attachment that succeeded.
type Write struct {
	uid types.UID
	// version is the resourceVersion that the attachment got.
	version string
	// began is when the write was sent.
	began time.Time
	// Released is the node as it was before the write, when it had released the attachment's volume, if that is known.
	Released *corev1.Node
}

// NewWrites returns none, of a process that leads, as long as leads says so.
func NewWrites(clock clock.PassiveClock, leads func() bool) *Writes {
	return &Writes{clock: clock, leads: leads, sent: map[types.UID]Write{}}
}

// By calls write, which creates, changes or deletes an attachment, and remembers it if it succeeds.
func (w *Writes) By(attachment *storagev1.VolumeAttachment, write func() error) error {
	return w.OnceReleased(nil, attachment, write)
}

// OnceReleased is By for a write that follows the release of an attachment's volume by its node.
func (w *Writes) OnceReleased(by *corev1.Node, attachment *storagev1.VolumeAttachment, write func() error) error {
	began := w.clock.Now()
	if err := write(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.clock.Now(); now.Sub(w.swept) > Moment {
		maps.DeleteFunc(w.sent, func(_ types.UID, sent Write) bool { return !w.Prove(sent) })
		w.swept = now
	}
	w.sent[attachment.UID] = Write{uid: attachment.UID, version: attachment.ResourceVersion, began: began, Released: by}
	return nil
}

// Has reports whether this process wrote to an attachment within the last moment, and the write wasn't taken.
func (w *Writes) Has(attachment *storagev1.VolumeAttachment) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	sent, found := w.sent[attachment.UID]
	return found && w.Prove(sent)
}

// Take returns the write to an attachment, and forgets it. It reports false if this process
// sent none within the last moment, or it was taken.
func (w *Writes) Take(attachment *storagev1.VolumeAttachment) (Write, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	sent, found := w.sent[attachment.UID]
	delete(w.sent, attachment.UID)
	return sent, found && w.Prove(sent)
}

// Prove reports whether a write was sent within the last moment, by the clock on the wall, too: the
// other one stops while a machine is suspended.
func (w *Writes) Prove(sent Write) bool {
	now, moment := w.clock.Now(), Moment
	if w.leads() {
		moment = LongMoment
	}
	for _, passed := range []time.Duration{now.Sub(sent.began), now.Round(0).Sub(sent.began.Round(0))} {
		if passed < 0 || passed > moment {
			return false
		}
	}
	return true
}

// ShownBy reports whether an object is the attachment as the write made it, or later.
func (w Write) ShownBy(object *storagev1.VolumeAttachment) bool {
	order, err := resourceversion.CompareResourceVersion(object.ResourceVersion, w.version)
	return object.UID == w.uid && err == nil && order >= 0
}
