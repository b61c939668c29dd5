package localvolume

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// disk is what there is to know about a disk before a volume is made on it.
// All numbers are bytes.
type disk struct {
	// size is all of it, and available what may still be written.
	size, available int64
	// given is the capacity of the other volumes, whether they are full or empty.
	given int64
	// reserved must stay free of volumes.
	reserved int64
}

// checkRoom says whether a volume that has some bytes of the disk already can
// have wanted bytes: nothing is promised twice, neither to another volume nor to
// the files that lie on the disk beside the volumes.
func (d disk) checkRoom(wanted, has int64) error {
	if left := d.size - d.reserved - d.given; wanted > left {
		return fmt.Errorf("%w: %s is asked for, and %s is left of %s (%s reserved, %s given to other volumes)",
			errExhausted, quantity(wanted), quantity(max(left, 0)), quantity(d.size), quantity(d.reserved), quantity(d.given))
	}
	if wanted-has > d.available {
		return fmt.Errorf("%w: %s is asked for, and only %s of the disk is free: other files take up the rest",
			errExhausted, quantity(wanted-has), quantity(d.available))
	}
	return nil
}

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
