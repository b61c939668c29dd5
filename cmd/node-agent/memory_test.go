package main

import (
	"runtime/debug"
	"testing"
)

func TestGarbageIsCollectedAfterLessGrowthThanByDefaultUnlessGOGCSaysOtherwise(t *testing.T) {
	for _, test := range []struct {
		name, environment string
		before, want      int
	}{
		{name: "without GOGC", before: 100, want: heapGrowth},
		{name: "with GOGC", environment: "200", before: 200, want: 200},
		{name: "with GOGC off", environment: "off", before: -1, want: -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			started := debug.SetGCPercent(test.before) // Go's runtime read GOGC as the process began
			t.Cleanup(func() { debug.SetGCPercent(started) })
			t.Setenv("GOGC", test.environment)
			limitHeap()
			if got := debug.SetGCPercent(test.before); got != test.want {
				t.Errorf("garbage is collected after %d %%, want %d", got, test.want)
			}
		})
	}
}
