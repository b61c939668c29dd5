package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/stowage-dev/stowage/test/harness/cluster"
)

const (
	managerName = "manager"
	agentName   = "node-agent"
	bareName    = "bare"
	otherName   = "other"

	logLines = 20
)

// elects has a manager lead by a lease, as in a cluster.
var elects = []string{"--leader-elect=true", "--leader-election-namespace=default"}

type contender struct {
	name                 string
	command, environment []string
}

// subject is the program to measure: the manager, or the one that --vs names.
func (b *testbed) subject(arguments ...string) contender {
	if b.options.vs != "" {
		line := strings.ReplaceAll(b.options.vs, "{{kubeconfig}}", b.kubeconfig)
		return contender{name: otherName, command: []string{"sh", "-c", "exec " + line}}
	}
	return contender{name: managerName, command: append([]string{
		b.options.manager, "--kubeconfig=" + b.kubeconfig, "--scope=cluster", "--leader-elect=false",
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--local-base=" + b.dir,
	}, arguments...)}
}

func (b *testbed) agent(node string, arguments ...string) contender {
	return contender{name: agentName, command: append([]string{
		b.options.agent, "--kubeconfig=" + b.kubeconfig, "--node-name=" + node, "--local-base=" + b.dir,
		"--metrics-bind-address=0", "--health-probe-bind-address=0",
	}, arguments...)}
}

func (b *testbed) part(name, part string, arguments ...string) contender {
	return contender{name: name, command: append([]string{b.self, part, b.kubeconfig}, arguments...)}
}

// processes are contenders that run. They never outlive this program.
type processes []*cluster.Program

func (b *testbed) start(contenders ...contender) (processes, error) {
	var started processes
	for _, c := range contenders {
		p := cluster.NewProgram(cluster.ProgramOptions{
			Name: c.name, LogFile: filepath.Join(b.dir, c.name+".log"),
			Path: c.command[0], Arguments: c.command[1:], Environment: c.environment,
		})
		if err := p.Start(); err != nil {
			started.stop()
			return nil, err
		}
		started = append(started, p)
	}
	return started, nil
}

// startReady starts programs, and waits until they are ready. If they aren't, they are stopped.
func (b *testbed) startReady(await func(processes) error, contenders ...contender) (processes, error) {
	running, err := b.start(contenders...)
	if err != nil {
		return nil, err
	}
	if err := await(running); err != nil {
		running.stop()
		return nil, fmt.Errorf("waiting for %s to be ready: %w", contenders[0].name, err)
	}
	return running, nil
}

func (p processes) stop() {
	for _, one := range p {
		_ = one.Stop() // it is killed if need be, and its round has been measured
	}
}

func (p processes) alive() error {
	var errs []error
	for _, one := range p {
		select {
		case <-one.Ended():
			errs = append(errs, fmt.Errorf("%s ended (%w); the end of its log:\n%s", one.Name, one.Err(), cluster.Tail(one.LogFile, logLines)))
		default:
		}
	}
	return errors.Join(errs...)
}

type usage struct {
	cpu  time.Duration
	each map[string]milliseconds
	// resident is the memory that they have in RAM, and peak the most that they had, in bytes.
	resident, peak uint64
}

func (p processes) usage() (used usage, err error) {
	used.each = map[string]milliseconds{}
	for _, one := range p {
		process, err := procfs.NewProc(one.PID())
		if err != nil {
			return usage{}, fmt.Errorf("finding process %d: %w", one.PID(), err)
		}
		stat, err := process.Stat()
		if err != nil {
			return usage{}, fmt.Errorf("reading CPU time: %w", err)
		}
		status, err := process.NewStatus()
		if err != nil {
			return usage{}, fmt.Errorf("reading memory use: %w", err)
		}
		cpu := time.Duration(stat.CPUTime() * float64(time.Second))
		used.cpu += cpu
		used.each[one.Name] += inMilliseconds(cpu)
		used.resident += status.VmRSS
		used.peak += status.VmHWM
	}
	return used, nil
}
