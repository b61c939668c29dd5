package guest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/stowage-dev/stowage/hack/uml"
	"github.com/stowage-dev/stowage/test/harness/cluster"
)

const (
	// AgentRoot is the agent's own folder on a node, below which it mounts, and
	// agentDisks has its local volumes.
	AgentRoot  = "/run/node-agent"
	agentDisks = "/run/disks"
	agentProbe = "127.0.0.1:8083"
)

// Agent is the node agent on a node, which can be killed and started again.
type Agent struct{ program *cluster.Program }

// AgentFiles say how it is started, in paths of the machine's; only its flags are as
// the node sees them.
type AgentFiles struct {
	Node, Program, Kubeconfig string
	Flags                     []string
	// Memory is how many bytes it and what it starts may take together, as in a container.
	// 0: there is no limit.
	Memory int64
	// Now is the machine's time. A guest's clock falls behind on a machine that is busy, and for
	// the agent the API server's certificate is not valid yet.
	Now time.Time
}

const agentGroup = "agent"

// AgentMemory is what an agent with a limit took.
type AgentMemory struct {
	// Peak is the most bytes that it had at once.
	Peak int64
	// Killed counts processes that were killed for it.
	Killed int64
}

// Start starts the agent, and waits until it is ready.
func (a *Agent) Start(request AgentFiles, _ *Nothing) error {
	for _, dir := range []string{AgentRoot, agentDisks} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	<-time.After(time.Until(request.Now))
	group, err := Confine(agentGroup, request.Memory)
	if err != nil {
		return err
	}
	a.program = cluster.NewProgram(cluster.ProgramOptions{
		Name: request.Node + "-agent", Path: filepath.Join(uml.MachineDir, request.Program), Cgroup: group,
		LogFile: filepath.Join(logsDir, request.Node+"-agent.log"), Probe: agentProbe,
		Arguments: append([]string{
			"--kubeconfig=" + filepath.Join(uml.MachineDir, request.Kubeconfig),
			"--node-name=" + request.Node, "--follow-pods", "--root-dir=" + AgentRoot, "--local-base=" + agentDisks,
			"--metrics-bind-address=0", "--log-format=console",
		}, request.Flags...),
	})
	return a.program.StartReady(context.Background())
}

// Kill ends the agent as a crash does.
func (a *Agent) Kill(_ Nothing, _ *Nothing) error {
	if a.program == nil {
		return errors.New("no agent runs")
	}
	return a.program.Kill()
}

// Stop ends the agent as the end of its pod does.
func (a *Agent) Stop(_ Nothing, _ *Nothing) error { return a.program.Stop() }

// Memory says what an agent with a limit took.
func (*Agent) Memory(_ Nothing, took *AgentMemory) (err error) {
	if took.Peak, err = readNumber(filepath.Join(groups, agentGroup, "memory.peak"), ""); err != nil {
		return err
	}
	took.Killed, err = readNumber(filepath.Join(groups, agentGroup, "memory.events"), "oom_kill")
	return err
}
