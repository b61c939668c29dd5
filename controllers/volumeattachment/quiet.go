package volumeattachment

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/wake"
)

const (
	// quietRefused is how long an error that is usually short is not written: kubelets wait
	// longer and longer for an attachment that has an error.
	quietRefused = 30 * time.Second
	// quietUnfinished is how long work may be in flight until an event says so.
	quietUnfinished = 2 * time.Minute
)

// quiet returns when to call again after an error that is not reported yet; 0 if it must be
// reported. A queued call wakes its attachment.
func (r *Reconciler) quiet(attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume, err error) time.Duration {
	now := r.clock.Now()
	switch {
	case errors.Is(err, backend.Queued):
		return wake.WithoutAnswer
	case errors.Is(err, backend.InProgress):
		if now.Sub(r.unfinished.Since(attachment.Name, now)) >= quietUnfinished {
			r.tell(attachment, pv, reasonSlow, fmt.Sprintf("node %s, for longer than %s: %v", attachment.Spec.NodeName, quietUnfinished, err))
		}
		return RetryUnfinished
	case errors.Is(err, backend.NotReady) && now.Sub(r.refused.Since(attachment.Name, now)) < quietRefused:
		return RetryUnfinished
	case !errors.Is(err, backend.NotReady):
		// This is another kind of error, and an event has it. The next error that is usually
		// short gets its full time.
		r.refused.Forget(attachment.Name)
	}
	return 0
}

// forget drops what is remembered of an attachment that is attached, or gone.
func (r *Reconciler) forget(of types.NamespacedName) {
	r.recorded.Forget(of)
	r.forced.Forget(of)
	r.refused.Forget(of.Name)
	r.unfinished.Forget(of.Name)
}
