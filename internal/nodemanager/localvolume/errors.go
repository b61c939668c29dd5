package localvolume

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/mount"
)

var errExhausted = errors.New("no room on the disk")

var errInUse = errors.New("the volume is in use")

var errNoDisk = errors.New("the disk isn't there")

var errNotSupported = errors.New("not supported by this version of Stowage")

var errInvalid = errors.New("the LocalVolume is invalid")

var errLost = errors.New("the volume is lost")

var errKept = errors.New("the object was deleted, and the data stays")

var errQueued = errors.New("waiting for its turn")

var errPending = errors.New("waiting")

// errImageMissing is that a volume's directory is there without its image.
var errImageMissing = fmt.Errorf("%w: its image is missing", errLost)

// messageOf is what the user reads.
func messageOf(err error, base Base) string {
	if errors.Is(err, mount.ErrOutside) {
		return fmt.Sprintf("%v: the node agent's --local-base is %s: use a path below it, or change the flag and the host path of the node agent's DaemonSet", err, base)
	}
	if errors.Is(err, mount.ErrUnfinished) {
		return fmt.Sprintf("%v: removing goes on", err)
	}
	return err.Error()
}

func isOutside(err error) bool { return errors.Is(err, mount.ErrOutside) }

// isNoRoom says whether the disk itself refused to hold more.
func isNoRoom(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// quantity writes bytes the way users do, rounded to a tenth of a MiB or more.
func quantity(bytes int64) string {
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
