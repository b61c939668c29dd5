package inspect

import (
	"testing"
	"time"
)

func TestOldOrForeignProgressIsIgnored(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct {
		of    string
		age   time.Duration
		valid bool
	}{
		"just now":                  {"it", time.Second, true},
		"by a clock that was ahead": {"it", -time.Hour, true},
		"long ago":                  {"it", 25 * time.Hour, false},
		"far ahead":                 {"it", -25 * time.Hour, false},
		"of other data":             {"other", time.Second, false},
	} {
		found := progress{Of: test.of, Written: now.Add(-test.age)}
		if found.valid("it", now) != test.valid {
			t.Errorf("%s: it counts: %v", name, !test.valid)
		}
	}
}

func TestAGrowingCountIsRoundedToFewValues(t *testing.T) {
	for count, want := range map[int64]int64{0: 0, 1: 1, 2: 2, 4: 2, 9: 5, 10: 10, 19: 10, 20: 20, 49: 20, 500: 500, 1 << 62: 2e18} {
		if got := rounded(count); got != want {
			t.Errorf("%d is rounded to %d", count, got)
		}
	}
}
