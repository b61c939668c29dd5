package mount

import (
	"fmt"
)

// UnmountBelow takes away every mount at path and below it, the latest first, and none
// elsewhere that they are shared with.
// It is a success only if the mount table then shows none.
func UnmountBelow(mounter Mounter, path string) error {
	table, err := mounter.Table()
	for err == nil && len(table.Below(path)) > 0 {
		points := table.Below(path)
		if err := makePrivate(mounter, table.SharedBeyond(path)); err != nil {
			return err
		}
		// A mount that lies under another one can be reached only in a later round,
		// and until then keeps busy what it is mounted on.
		refused := unmountEach(mounter, points)
		table, err = mounter.Table()
		if left := table.Below(path); err == nil && len(left) >= len(points) {
			if refused == nil {
				refused = ErrMounted
			}
			return fmt.Errorf("unmounting everything at %s: %d mounts stay: %w", path, len(left), refused)
		}
	}
	return err
}

// setApart comes before the first of them is unmounted: what is unmounted below one goes
// from all that it is shared with. Where that can't be, none is unmounted.
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
