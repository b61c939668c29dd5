package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

const (
	stopTimeout  = 30 * time.Second
	pollInterval = 50 * time.Millisecond
	tailLines    = 12
)

// Program is one of Stowage's own programs as a child of this one. It can be
// started again after it ended. It never outlives this process.
type Program struct {
	Name string
	// LogFile is where all its runs log to.
	LogFile string
	// Metrics is the URL of its metrics. Empty: it serves none.
	Metrics string

	path        string
	arguments   []string
	environment []string // in addition to this process's own
	probe       string
	cgroup      string

	mu sync.Mutex
	// now is the present run, or the last; before the first, one without a process.
	now *run
}

type run struct {
	process *os.Process
	// ended is closed when the process is gone; then err is how it went.
	ended chan struct{}
	err   error
}

// ProgramOptions say how a program is started.
type ProgramOptions struct {
	Name, LogFile string
	// Path is its file. Empty: the one of its name that `make build` makes.
	Path string
	// Probe and Metrics are the addresses that it answers probes and serves metrics at, which
	// flags set.
	Probe, Metrics string
	// Ready is the URL that answers once it is ready, of a program that has no flag
	// for probes.
	Ready     string
	Arguments []string
	// Environment is added to this process's own.
	Environment []string
	// Cgroup is the folder of a cgroup of version 2 in which it runs. Empty: that of this
	// process.
	Cgroup string
}

// NewProgram is a program that doesn't run yet.
func NewProgram(options ProgramOptions) *Program {
	program := &Program{
		now: &run{}, Name: options.Name, LogFile: options.LogFile, path: cmp.Or(options.Path, builtPath(apiserver.Repository(), options.Name)),
		probe: options.Ready, arguments: options.Arguments, environment: options.Environment, cgroup: options.Cgroup,
	}
	if options.Probe != "" {
		program.probe = "http://" + options.Probe + "/readyz"
		program.arguments = append([]string{"--health-probe-bind-address=" + options.Probe}, options.Arguments...)
	}
	if options.Metrics != "" {
		program.Metrics = "http://" + options.Metrics + "/metrics"
		program.arguments = append([]string{"--metrics-bind-address=" + options.Metrics}, program.arguments...)
	}
	return program
}

// Start starts the program. It must not be running.
func (p *Program) Start() error {
	log, err := os.OpenFile(p.LogFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", p.Name, err)
	}
	command := exec.Command(p.path, p.arguments...)
	command.Stdout, command.Stderr = log, log
	command.Env = append(command.Environ(), p.environment...)
	// Its own process group: a Ctrl-C in the terminal is for this process alone,
	// which stops things in their order.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if p.cgroup != "" {
		group, err := os.Open(p.cgroup)
		if err != nil {
			log.Close()
			return fmt.Errorf("opening the cgroup of %s: %w", p.Name, err)
		}
		defer group.Close()
		command.SysProcAttr.UseCgroupFD, command.SysProcAttr.CgroupFD = true, int(group.Fd())
	}

	started := make(chan error)
	r := &run{ended: make(chan struct{})}
	go func() {
		// Pdeathsig comes when the thread that started the child ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer log.Close()
		err := command.Start()
		r.process = command.Process
		started <- err
		if err == nil {
			r.err = command.Wait()
			close(r.ended)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = r
	return nil
}

// StartReady starts the program, and waits until it says that it is ready.
func (p *Program) StartReady(ctx context.Context) error {
	if err := p.Start(); err != nil {
		return err
	}
	return p.AwaitReady(ctx)
}

// Ended is closed when the present run is over. A program that was never
// started has nothing to wait for.
func (p *Program) Ended() <-chan struct{} { return p.current().ended }

// Err says how the last run ended. It is asked after Ended.
func (p *Program) Err() error { return p.current().err }

// PID is that of the present run.
func (p *Program) PID() int {
	if r := p.current(); r.process != nil {
		return r.process.Pid
	}
	return 0
}

// AwaitReady waits until the program says that it is ready.
func (p *Program) AwaitReady(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, pollInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.Ended():
			return false, fmt.Errorf("it ended: %w", p.Err())
		default:
			return p.isReady(ctx), nil
		}
	})
	if err != nil {
		err = fmt.Errorf("waiting for %s to be ready: %w; the end of %s:\n%s", p.Name, err, p.LogFile, Tail(p.LogFile, tailLines))
	}
	return err
}

func (p *Program) isReady(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.probe, http.NoBody)
	if err != nil {
		return false
	}
	response, err := probing.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// probing asks programs of this machine, some of which sign their certificates themselves.
var probing = &http.Client{Transport: &http.Transport{
	TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // Only whether it answers is asked.
	DisableKeepAlives: true,
}}

// Kill ends the program as a crash does, without a chance to tidy up, and waits
// until it is gone.
func (p *Program) Kill() error {
	return p.end(syscall.SIGKILL)
}

// Stop asks the program to end, and kills it if it takes too long. A nil program has nothing
// to stop.
func (p *Program) Stop() error {
	return p.end(syscall.SIGTERM)
}

func (p *Program) end(signal syscall.Signal) error {
	if p == nil || p.current().process == nil {
		return nil
	}
	r := p.current()
	_ = r.process.Signal(signal) // an error says that it is gone already
	select {
	case <-r.ended:
		return nil
	case <-time.After(stopTimeout):
	}
	_ = r.process.Kill()
	<-r.ended
	return fmt.Errorf("stopping %s: it did not end within %s and was killed", p.Name, stopTimeout)
}

func (p *Program) current() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// Tail is the last lines of a file.
func Tail(file string, lines int) string {
	content, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimRight(content, "\n"), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}
