package main

import (
	"errors"
	"math"
	"os"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
)

const gibibyte = 1 << 30

func TestTheManagerKeepsBelowTheLimitOfItsContainer(t *testing.T) {
	for name, test := range map[string]struct {
		limit memlimit.Provider
		goes  string
		want  int64
	}{
		"a container with a limit":    {limit: memlimit.Limit(gibibyte), want: gibibyte * 9 / 10},
		"a container without a limit": {limit: failing(memlimit.ErrNoLimit), want: math.MaxInt64},
		"no container":                {limit: failing(memlimit.ErrNoCgroup), want: math.MaxInt64},
		"a broken file system":        {limit: failing(errors.New("input/output error")), want: math.MaxInt64},
		"a limit that a person set":   {limit: memlimit.Limit(gibibyte), goes: "700MiB", want: math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			before := debug.SetMemoryLimit(math.MaxInt64)
			t.Cleanup(func() { debug.SetMemoryLimit(before) })
			for _, name := range []string{"GOMEMLIMIT", "AUTOMEMLIMIT"} {
				t.Setenv(name, "") // which restores it
				if err := os.Unsetenv(name); err != nil {
					t.Fatal(err)
				}
			}
			if test.goes != "" {
				t.Setenv("GOMEMLIMIT", test.goes) // Go's runtime read it as the process began
			}
			limitMemory(test.limit, logr.Discard())
			if got := debug.SetMemoryLimit(-1); got < test.want-1 || got > test.want {
				t.Errorf("it keeps below %d bytes, wanted %d", got, test.want)
			}
		})
	}
}

func failing(err error) memlimit.Provider {
	return func() (uint64, error) { return 0, err }
}
