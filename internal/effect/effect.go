// Package effect counts each effect, and writes one INFO line about it to the log: what was bound,
// attached, mounted, and so on. All lines of manager and node agent have the same messages and keys.
//
// Code that has an effect calls Log once it is written. Effects that also have an event are
// logged by package event. Reported logs the errors of a reconciler when they change. This
// package decides nothing, and sends no event.
package effect

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Messages of lines: what was done.
const (
	Bound             = "bound"
	Provisioned       = "provisioned"
	Deleted           = "deleted"
	Attached          = "attached"
	Detached          = "detached"
	Forced            = "forced"
	Expanded          = "expanded"
	Recycled          = "recycled"
	Released          = "released"
	Retained          = "retained"
	Kept              = "kept"
	Adopted           = "adopted"
	Mounted           = "mounted"
	Unmounted         = "unmounted"
	Formatted         = "formatted"
	OrphanRemoved     = "orphan removed"
	ClaimCreated      = "claim created"
	ClassRemoved      = "class removed"
	AttachmentCreated = "attachment created"
	AttachmentDeleted = "attachment deleted"
)

// Warning is the message of a line about a failure: Reason and Note have the rest.
const Warning = "warning"

// Keys of the values of a line. A value that isn't known has no key.
const (
	// Claim is namespace/name of a PersistentVolumeClaim.
	Claim = "claim"
	// Volume is the name of a PersistentVolume, or the id of a backend's volume. Where Stowage
	// made the volume, both are the same.
	Volume = "volume"
	// Backend is the name of a StorageBackend.
	Backend = "backend"
	// Node is the name of a Node.
	Node = "node"
	// Pod is namespace/name of a Pod; its UID if the pod is gone.
	Pod = "pod"
	// Took is the time from the request to the effect, such as 1.5s: from the creation of a claim
	// or attachment, or from its deletion. For calls on a node, it is the duration of the call.
	Took = "took"
	// Reason and Note are those of the event.
	Reason = "reason"
	Note   = "note"
)

// Log writes the line of an effect on some objects to the logger of the context. began is when it was requested; if it is zero,
// the line has no duration.
func Log(ctx context.Context, what string, began time.Time, about ...runtime.Object) {
	LogValues(ctx, what, began, About(about...))
}

// LogNow is Log for an effect of which it is unknown when it was requested.
func LogNow(ctx context.Context, what string, about ...runtime.Object) {
	Log(ctx, what, time.Time{}, about...)
}

// LogAttachmentDeleted logs the deletion of a VolumeAttachment. For drivers that aren't Stowage's, a
// forced one is all of the forced detach that Stowage does.
func LogAttachmentDeleted(ctx context.Context, attachment *storagev1.VolumeAttachment, forced bool) {
	what := AttachmentDeleted
	if forced {
		what = Forced
	}
	LogNow(ctx, what, attachment)
}

// LogValues is Log for keys and values that About returned, or the caller made.
func LogValues(ctx context.Context, what string, began time.Time, values []any) {
	Count(what, began)
	logr.FromContextOrDiscard(ctx).Info(what, append(values, Since(began)...)...)
}

// Since returns key and value of the time since an effect was requested; nil if began is zero.
func Since(began time.Time) []any {
	if began.IsZero() {
		return nil
	}
	return []any{Took, max(0, time.Since(began)).Round(time.Millisecond).String()}
}
