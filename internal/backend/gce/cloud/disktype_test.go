package cloud

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestSizesAreRoundedUpToWhatThereIs(t *testing.T) {
	balanced, extreme := DiskType{"pd-balanced", 10, 65536}, DiskType{"pd-extreme", 500, 65536}
	for _, test := range []struct {
		of    DiskType
		asked string
		gib   int64
	}{
		{balanced, "1Mi", 10},
		{balanced, "10Gi", 10},
		{balanced, "10737418241", 11}, // a byte more than 10Gi
		{balanced, "20G", 19},
		{balanced, "64Ti", 65536},
		{balanced, "65537Gi", 0},
		{balanced, "9E", 0},
		{extreme, "20Gi", 500},
		{DiskType{"unknown", 1, 0}, "1", 1},
	} {
		got, err := test.of.AtLeast(resource.MustParse(test.asked))
		if got != test.gib || (err == nil) != (test.gib > 0) {
			t.Errorf("%s of %s: %d, %v", test.asked, test.of.Name, got, err)
		}
	}
}
