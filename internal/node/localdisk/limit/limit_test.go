package limit

import (
	"testing"

	"github.com/stowage-dev/stowage/internal/quota"
)

func TestAVolumeKeepsTheInodesThatItHas(t *testing.T) {
	for name, test := range map[string]struct{ share, Set, used, want int64 }{
		"a new one":                               {1000, 1000, 10, 1000},
		"one that grew":                           {2000, 1000, 10, 2000},
		"one whose growth was taken back":         {1000, 2000, 10, 2000},
		"one that was made without a limit":       {1000, 0, 10, 1000},
		"one that was made without, and has more": {1000, 0, 5000, 5500},
		"one that had more, and removed them":     {1000, 5500, 10, 5500},
		"one on a disk that has no such thing":    {0, 0, 10, 0},
	} {
		if got := mayHave(test.share, quota.Usage{Inodes: test.used, Limit: quota.Limits{Inodes: test.Set}}); got != test.want {
			t.Errorf("%s may have %d, want %d", name, got, test.want)
		}
	}
}
