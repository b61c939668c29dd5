// Package uml runs machines with a kernel of their own: User Mode Linux guests,
// which are ordinary processes. Tests use them for what the kernel of the machine
// can't do, such as mounting NFS, and to lose a node by killing a process.
//
// A guest has the files of the machine as its root, read-only, and memory to write
// to in /run and /tmp. Its first process is a program of the test's, which calls
// Prepare; the outside calls Boot.
package uml

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Disk is where a guest that has a disk of its own finds it.
const Disk = "/dev/ubda"

const compiler = "gcc"

// consoleDelay is how long what a guest printed last may take to arrive, though
// helpers of its kernel still hold the console.
const consoleDelay = time.Second

//go:embed preload/preload.c
var preloaded []byte

// Options describe a guest.
type Options struct {
	// Name distinguishes guests, and Dir is a folder for what they need to run.
	Name, Dir string
	// Memory is how much it has, such as 256M.
	Memory string
	// CPU counts the machine's, around and around: on which one it runs.
	CPU int
	// Disk is the image of the disk that it sees as /dev/ubda, if it has one.
	Disk string
	// Tap is the network device at this end of its only link.
	Tap string
	// Init is its first process, with arguments. It powers the guest off when it ends.
	Init []string
	// Environment is the first process's, as NAME=value.
	Environment []string
	// Console gets what the kernel and the processes print.
	Console io.Writer
}

// Guest is a running guest.
type Guest struct {
	process *exec.Cmd
	cpu     int
	gone    chan struct{}
}

// Boot starts a guest. It ends with the program that started it, at the latest.
func Boot(ctx context.Context, options Options) (*Guest, error) {
	library, err := preload(ctx, options.Dir)
	if err != nil {
		return nil, err
	}
	arguments := append([]string{
		"umid=" + options.Name, "uml_dir=" + options.Dir + "/", "mem=" + options.Memory,
		"rootfstype=hostfs", "root=/dev/root", "rootflags=/", "ro", "quiet", "panic=-1",
		"con=null", "con0=null,fd:1", "seccomp=auto",
		"vec0:transport=tap,ifname=" + options.Tap + ",depth=128,gro=1",
		Variable + "=" + os.Getenv(Variable),
	}, options.Environment...)
	if options.Disk != "" {
		arguments = append(arguments, "ubda="+options.Disk)
	}
	// The kernel takes what it doesn't know for its first process's environment.
	arguments = append(append(arguments, "init="+options.Init[0], "--"), options.Init[1:]...)
	process := exec.CommandContext(ctx, kernel(), arguments...)
	process.Env = append(os.Environ(), "LD_PRELOAD="+library, "TMPDIR="+options.Dir)
	process.Stdout, process.Stderr = options.Console, options.Console
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	guest := &Guest{process: process, cpu: options.CPU, gone: make(chan struct{})}
	process.Cancel, process.WaitDelay = guest.kill, consoleDelay
	if err := guest.start(); err != nil {
		return nil, fmt.Errorf("booting guest %s: %w", options.Name, err)
	}
	return guest, nil
}

// start starts the guest on a thread that lives as long as it does, and ends with it: the
// guest is killed when the thread ends that started it, and runs where that may run.
func (g *Guest) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := stayOn(g.cpu)
		if err == nil {
			err = g.process.Start()
		}
		started <- err
		if err == nil {
			defer close(g.gone)
			_ = g.process.Wait() // a guest that is killed didn't end well
			_ = g.kill()         // an error says that its helpers are gone, too
		}
	}()
	return <-started
}

// stayOn has this thread, and what it starts, run on one CPU. A guest's kernel and its
// processes take turns all the time, which takes twice as long from one CPU to another.
func stayOn(cpu int) error {
	var may, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return fmt.Errorf("asking for the CPUs: %w", err)
	}
	var all []int
	for i := range len(may) * bits.UintSize {
		if may.IsSet(i) {
			all = append(all, i)
		}
	}
	one.Set(all[cpu%len(all)])
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("staying on one CPU: %w", err)
	}
	return nil
}

// kill kills the kernel and its helpers, which are processes of their own.
func (g *Guest) kill() error { return syscall.Kill(-g.process.Process.Pid, syscall.SIGKILL) }

// Gone is closed when the guest is.
func (g *Guest) Gone() <-chan struct{} { return g.gone }

// Crash ends the guest at once, as a loss of power does.
func (g *Guest) Crash() {
	_ = g.kill() // an error says that it is gone already
	<-g.gone
}

func preload(ctx context.Context, dir string) (library string, err error) {
	library = filepath.Join(dir, "preload.so")
	if _, err := os.Stat(library); err == nil {
		return library, nil
	}
	build := exec.CommandContext(ctx, compiler, "-O2", "-shared", "-fPIC", "-o", library, "-x", "c", "-")
	build.Stdin = bytes.NewReader(preloaded)
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building a library for the guest: %w: %s", err, output)
	}
	return library, nil
}
