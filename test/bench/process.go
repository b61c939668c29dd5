package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	stopTimeout = 20 * time.Second
	// ticksPerSecond is USER_HZ, in which /proc counts CPU time: 100 on every
	// architecture that Go runs Linux on.
	ticksPerSecond = 100
	tailBytes      = 2000
)

// process is one run of a contender. It never outlives this program.
type process struct {
	pid   int
	log   string
	ended chan struct{}
}

// usage is what a process used since it started.
type usage struct {
	cpu time.Duration
	// peak is the most memory that it had in RAM, in bytes.
	peak int64
}

func (b *testbed) run(c contender, environment ...string) (*process, error) {
	log, err := os.Create(filepath.Join(b.dir, c.name+".log"))
	if err != nil {
		return nil, fmt.Errorf("opening a log: %w", err)
	}
	command := exec.Command(c.command[0], c.command[1:]...)
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), environment...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p := &process{log: log.Name(), ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Pdeathsig comes when the thread that started the child ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer log.Close()
		err := command.Start()
		if err == nil {
			p.pid = command.Process.Pid
		}
		started <- err
		if err == nil {
			_ = command.Wait() // how it ended shows in the log
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.name, err)
	}
	return p, nil
}

// stop ends the process and waits until it is gone.
func (p *process) stop() {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		_ = syscall.Kill(p.pid, signal) // an error says that it is gone already
		select {
		case <-p.ended:
			return
		case <-time.After(stopTimeout):
		}
	}
}

// alive returns an error, with the end of the log, if the process ended.
func (p *process) alive() error {
	select {
	case <-p.ended:
		log, _ := os.ReadFile(p.log)
		return fmt.Errorf("it ended; the end of its log:\n%s", log[max(0, len(log)-tailBytes):])
	default:
		return nil
	}
}

func (p *process) usage() (usage, error) {
	dir := fmt.Sprintf("/proc/%d", p.pid)
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return usage{}, fmt.Errorf("reading CPU time: %w", err)
	}
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return usage{}, fmt.Errorf("reading memory use: %w", err)
	}
	cpu, err := cpuTime(stat)
	if err != nil {
		return usage{}, err
	}
	peak, err := peakMemory(status)
	return usage{cpu: cpu, peak: peak}, err
}

// cpuTime reads user and system time, fields 14 and 15, from /proc/PID/stat. The
// second field is the program's name in brackets, which may hold spaces.
func cpuTime(stat []byte) (time.Duration, error) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("reading CPU time from %q", stat)
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading CPU time from %q: %w", stat, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

// peakMemory reads VmHWM from /proc/PID/status.
func peakMemory(status []byte) (int64, error) {
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, "VmHWM:"); found {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return kib * 1024, err
		}
	}
	return 0, fmt.Errorf("reading peak memory: no VmHWM in %q", status)
}
