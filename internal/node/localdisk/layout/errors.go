package layout

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/mount"
)

var ErrExhausted = errors.New("no room on the disk")

var ErrInUse = errors.New("the volume is in use")

var ErrNoDisk = errors.New("the disk isn't there")

var ErrNotSupported = errors.New("not supported by this version of Stowage")

var ErrInvalid = errors.New("the LocalVolume is invalid")

var ErrLost = errors.New("the volume is lost")

var ErrKept = errors.New("the object was deleted, and the data stays")

var ErrQueued = errors.New("waiting for its turn")

var ErrPending = errors.New("waiting")

// ErrImageMissing is that a volume's directory is there without its image.
var ErrImageMissing = fmt.Errorf("%w: its image is missing", ErrLost)

// MessageOf is what the user reads.
func MessageOf(err error, base Base) string {
	if errors.Is(err, mount.ErrOutside) {
		return fmt.Sprintf("%v: the node agent's --local-base is %s: use a path below it, or change the flag and the host path of the node agent's DaemonSet", err, base)
	}
	if errors.Is(err, mount.ErrUnfinished) {
		return fmt.Sprintf("%v: removing goes on", err)
	}
	return err.Error()
}

func IsOutside(err error) bool { return errors.Is(err, mount.ErrOutside) }

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
