package mount

import "fmt"

// UnmountBelow takes away every mount at path and below it, the latest first.
// It is a success only if the mount table then shows none.
func UnmountBelow(mounter Mounter, path string) error {
	left := -1
	for {
		table, err := mounter.Table()
		if err != nil {
			return err
		}
		points := table.Below(path)
		if len(points) == 0 {
			return nil
		}
		// A mount that another one hides can only be reached in the next round.
		if len(points) == left {
			return fmt.Errorf("unmounting %s: %d mounts stay: %w", path, left, ErrMounted)
		}
		left = len(points)
		for _, point := range points {
			if err := mounter.Unmount(point.Path); err != nil {
				return err
			}
		}
	}
}
