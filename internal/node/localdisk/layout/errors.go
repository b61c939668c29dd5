package layout

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

// Kinds of errors. A condition's reason follows from them, and so does when to try again.
var (
	// ErrExhausted: the disk has no room for the volume.
	ErrExhausted = errors.New("no room on the disk")
	// ErrInUse: the volume is mounted, attached, or being copied.
	ErrInUse = errors.New("the volume is in use")
	// ErrNoDisk: the folder isn't on the disk that was accepted.
	ErrNoDisk = errors.New("the disk isn't there")
	// ErrNotSupported: a newer version may make such a volume.
	ErrNotSupported = errors.New("not supported by this version of Stowage")
	// ErrInvalid: only another spec cures it.
	ErrInvalid = errors.New("the NodeVolume is invalid")
	// ErrLost: the volume was made, and isn't on its disk.
	ErrLost = errors.New("the volume is lost")
	// ErrImageMissing is ErrLost of a volume whose directory is there without its image.
	ErrImageMissing = fmt.Errorf("%w: its image is missing", ErrLost)
	// ErrKept: the object was deleted without an order to remove the data.
	ErrKept = errors.New("the object was deleted, and the data stays")
	// ErrQueued: other volumes are worked on first.
	ErrQueued = errors.New("waiting for its turn")
	// ErrPending: something that another component does has yet to happen.
	ErrPending = errors.New("waiting")
)

// MessageOf is what the user reads.
func MessageOf(err error, base Base) string {
	if errors.Is(err, safepath.ErrOutside) {
		return fmt.Sprintf("%v: the node agent's --local-base is %s: use a path below it, or change the flag and the host path of the node agent's DaemonSet", err, base)
	}
	if errors.Is(err, filetree.ErrUnfinished) {
		return fmt.Sprintf("%v: removing goes on", err)
	}
	return err.Error()
}

// IsOutside reports whether a path isn't below the base directory, or leads through a symlink.
func IsOutside(err error) bool { return errors.Is(err, safepath.ErrOutside) }

// IsNoRoom says whether the disk itself refused to hold more.
func IsNoRoom(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// Quantity writes bytes the way users do, rounded to a tenth of a MiB or more.
func Quantity(bytes int64) string {
	const gibibyte, mebibyte = 1 << 30, 1 << 20
	switch {
	case bytes%gibibyte != 0 && bytes > gibibyte:
		return fmt.Sprintf("%.1fGi", float64(bytes)/gibibyte)
	case bytes%mebibyte != 0 && bytes > mebibyte:
		return fmt.Sprintf("%.1fMi", float64(bytes)/mebibyte)
	default:
		return resource.NewQuantity(bytes, resource.BinarySI).String()
	}
}
