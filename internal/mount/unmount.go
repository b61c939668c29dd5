package mount

import "fmt"

// UnmountBelow takes away every mount at path and below it, the latest first.
// It is a success only if the mount table then shows none.
func UnmountBelow(mounter Mounter, path string) error {
	points, err := below(mounter, path)
	for err == nil && len(points) > 0 {
		// A mount that lies under another one can be reached only in a later round,
		// and until then keeps busy what it is mounted on.
		refused := unmountEach(mounter, points)
		left, tableErr := below(mounter, path)
		if tableErr == nil && len(left) > 0 && len(left) >= len(points) {
			if refused == nil {
				refused = ErrMounted
			}
			return fmt.Errorf("unmounting everything at %s: %d mounts stay: %w", path, len(left), refused)
		}
		points, err = left, tableErr
	}
	return err
}

func below(mounter Mounter, path string) ([]Point, error) {
	table, err := mounter.Table()
	if err != nil {
		return nil, err
	}
	return table.Below(path), nil
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
