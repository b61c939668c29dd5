package main

import (
	"fmt"
	"os"
	"time"

	"github.com/prometheus/procfs"
)

// ticksPerSecond is the unit of the times in /proc/PID/stat, on every platform that Go knows.
const ticksPerSecond = 100

// wholeCPU is the CPU time of this program and of all that it started, and of what those ran and waited for. Where all processors are
// busy, it is what a speed is made of.
func wholeCPU() (time.Duration, error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return 0, fmt.Errorf("listing processes: %w", err)
	}
	ticks := uint(0)
	for _, process := range processes {
		stat, err := process.Stat()
		if err != nil {
			continue // It has ended since.
		}
		if stat.PID == os.Getpid() || stat.PPID == os.Getpid() {
			ticks += stat.UTime + stat.STime + uint(max(0, stat.CUTime+stat.CSTime))
		}
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

// cpuEach is how much of it was used since, for each that was done.
func cpuEach(since time.Duration, done int) (milliseconds, error) {
	now, err := wholeCPU()
	if err != nil || done == 0 {
		return 0, err
	}
	return inMilliseconds(now-since) / milliseconds(done), nil
}
