package room

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

const (
	// mebibyte is what numbers are rounded to: people read them.
	mebibyte = 1 << 20
	// worthTelling is which part of a disk is told of at once when it is used or
	// freed; what was given or freed by volumes is told after CalmDown, and less than
	// that which others wrote isn't told.
	worthTelling = 100
	// CalmDown is how long numbers rest before small changes of them are written.
	CalmDown = 10 * time.Second
)

// At finds out what room the disk of a backend's open folder has beside the volumes
// of the node. Of a volume it needs the path and what must stay free.
func (r *Rooms) At(ctx context.Context, folder *os.File, of layout.Volume, volumes layout.Lister) (Room, error) {
	turn, err := r.TakeTurn(ctx, of.Path)
	if err != nil {
		return Room{}, err
	}
	defer turn.End()
	return r.Beside(turn, folder, of, volumes)
}

// measure finds out what room the disk of an open folder has.
func (r *Rooms) measure(turn Turn, folder *os.File, reserved int64, volumes []layout.Volume) (Room, error) {
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(folder.Fd()), &stat); err != nil {
		return Room{}, fmt.Errorf("asking for the size of the disk at %s: %w", folder.Name(), err)
	}
	there, err := r.diskOf(turn)
	if err != nil {
		return Room{}, err
	}
	defer there.close()
	there.shares = stat.Type == unix.XFS_SUPER_MAGIC || stat.Type == unix.BTRFS_SUPER_MAGIC
	promised, err := r.promisedOn(there, volumes)
	return Room{
		total:  int64(stat.Blocks) * stat.Frsize,
		used:   int64(stat.Blocks-stat.Bfree) * stat.Frsize,
		free:   int64(stat.Bavail) * stat.Frsize,
		inodes: int64(stat.Files), freeInodes: int64(stat.Ffree),
		reserved: reserved, shares: there.shares,
		promised: promised,
	}, err
}

// Tell puts numbers into a NodeDisk's status, in memory, if they are news: small
// changes are none before what was written last is old.
func (r Room) Tell(status *stowagev1alpha1.NodeDiskStatus, isOld bool) {
	fresh := status.DeepCopy()
	fresh.Total, fresh.Used = inMebibytes(r.total), inMebibytes(r.used)
	fresh.Given, fresh.Available = inMebibytes(r.given), inMebibytes(r.left())
	switch {
	case status.Total == nil || status.Used == nil || status.Given == nil || status.Available == nil,
		status.Total.Cmp(*fresh.Total) != 0,
		status.Available.IsZero() != fresh.Available.IsZero(),
		r.differs(status.Available, fresh.Available), r.differs(status.Used, fresh.Used), r.differs(status.Given, fresh.Given),
		isOld && !equality.Semantic.DeepEqual(status.Given, fresh.Given):
		*status = *fresh
	}
}

// differs says whether two numbers of a disk are a part of it apart that is worth
// telling.
func (r Room) differs(a, b *resource.Quantity) bool {
	apart := a.Value() - b.Value()
	return max(apart, -apart) >= max(r.total/worthTelling, mebibyte)
}

// inMebibytes is a number of bytes, rounded down to whole MiB.
func inMebibytes(bytes int64) *resource.Quantity {
	return resource.NewQuantity(bytes/mebibyte*mebibyte, resource.BinarySI)
}

// Fullness is the reason and the message of the condition that says whether a disk has room
// for volumes. Its numbers stay the same while the disk is used.
func (r Room) Fullness() (reason, message string) {
	switch {
	case r.left() >= mebibyte:
		return stowagev1alpha1.ReasonReady, "volumes can be given some of the disk"
	case r.leftBytes() >= mebibyte:
		return stowagev1alpha1.ReasonFull, "hardly any inodes are left on the disk: remove files, delete claims, or add a node or a disk"
	default:
		return stowagev1alpha1.ReasonFull, fmt.Sprintf("nothing is left of %s (%s reserved): delete claims, remove other files, or add a node or a disk",
			layout.Quantity(r.total), layout.Quantity(r.reserved))
	}
}
