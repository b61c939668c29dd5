package mount

import (
	"fmt"
)

// UnmountBelow unmounts everything at path and below it, the latest mount first. Mounts
// elsewhere stay, also of the same peer group. It succeeds only if the mount table then shows
// none.
func UnmountBelow(mounter Mounter, path string) error {
	table, err := mounter.Table()
	points := table.Below(path)
	for err == nil && len(points) > 0 {
		if err := makePrivate(mounter, table.SharedBeyond(path)); err != nil {
			return err
		}
		// A mount that lies under another one can be reached only in a later round,
		// and until then keeps busy what it is mounted on.
		refused := unmountEach(mounter, points)
		table, err = mounter.Table()
		left := table.Below(path)
		if err == nil && len(left) >= len(points) {
			if refused == nil {
				refused = ErrMounted
			}
			return fmt.Errorf("unmounting everything at %s: %d mounts stay: %w", path, len(left), refused)
		}
		points = left
	}
	return err
}

// makePrivate comes before the first unmount: an unmount below a shared mount propagates to
// its whole peer group. Where it fails, nothing is unmounted.
func makePrivate(mounter Mounter, points []Point) error {
	for _, point := range points {
		if err := mounter.MakePrivate(point.Path); err != nil {
			return err
		}
	}
	return nil
}

// unmountEach tries all and returns the first error.
func unmountEach(mounter Mounter, points []Point) error {
	var first error
	for _, point := range points {
		if err := mounter.Unmount(point.Path); err != nil && first == nil {
			first = err
		}
	}
	return first
}
