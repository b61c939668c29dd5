package main

import (
	"testing"
	"time"
)

func TestUsageIsReadFromProc(t *testing.T) {
	cpu, err := cpuTime([]byte("77 (a (odd) name) S 1 77 77 0 -1 4194560 100 0 0 0 130 20 0 0 20 0 9 0 1 1 1"))
	if err != nil || cpu != 1500*time.Millisecond {
		t.Errorf("CPU time %v, %v", cpu, err)
	}
	peak, err := peakMemory([]byte("Name:\tmanager\nVmPeak:\t 9 kB\nVmHWM:\t    2048 kB\nVmRSS:\t 7 kB\n"))
	if err != nil || peak != 2<<20 {
		t.Errorf("peak memory %d, %v", peak, err)
	}
}

func TestUsageThatCannotBeReadIsAnError(t *testing.T) {
	if _, err := cpuTime([]byte("77 (name) S 1")); err == nil {
		t.Error("a short stat is no error")
	}
	if _, err := peakMemory([]byte("Name:\tmanager\n")); err == nil {
		t.Error("a status without VmHWM is no error")
	}
}
