package sanity_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/hack/uml"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/test/harness/cluster"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// guestRoot is where a guest has its own files.
const guestRoot = "/run/host"

const agentProbe = "127.0.0.1:8083"

// Host is one that the agent and the suites run on: the machine, or a guest.
type Host struct{ agent *cluster.Program }

// Agent says how an agent is started, in paths of its host's.
type Agent struct {
	Node, Program, Kubeconfig, Log string
	// Root has the kubelet's folder and the agent's, Base the local volumes.
	Root, Base string
	// Devices is where disks are found, of which there are at most MaxDisks.
	Devices  string
	MaxDisks int
}

// agentOf is the agent of a node, which has its own files in a root; the machine has
// its in the test's folder.
func (s *testbed) agentOf(node, root string) (Agent, error) {
	path, err := cluster.ProgramPath("node-agent")
	if err != nil {
		return Agent{}, err
	}
	if root != "" {
		return Agent{
			Node: node, Program: uml.MachineDir + path, Kubeconfig: uml.MachineDir + s.stowage.Folder.Kubeconfig(node),
			Log: "/run/logs/" + node + "-agent.log", Root: root, Base: s.stowage.Folder.Disks(), Devices: filepath.Join(root, "devices"),
		}, nil
	}
	return Agent{
		Node: node, Program: path, Kubeconfig: s.stowage.Folder.Kubeconfig(node), Log: s.folder.Log(node + "-agent"),
		Root: s.machineDir(), Base: s.stowage.Folder.Disks(), MaxDisks: diskLimit,
		Devices: filepath.Join(s.devices(), cluster.CloudProject, cluster.CloudZone, node),
	}, nil
}

// kubeletDir is where on a host the kubelet has its folder.
func kubeletDir(root string) string { return filepath.Join(root, "kubelet") }

// Prepare gives a guest's kernel what it needs, and mounts the guest's disk where local
// volumes lie.
func (*Host) Prepare(base string, _ *guest.Nothing) error {
	if err := uml.LoadModules("nfs", "nfsv3", uml.NFSv4, "loop"); err != nil {
		return err
	}
	if err := os.MkdirAll(base, 0o755); err != nil {
		return err
	}
	return guest.Commands(context.Background(), "mkfs.ext4 -q "+uml.Disk, "mount "+uml.Disk+" "+base)
}

// Start starts the agent, and waits until it is ready.
func (h *Host) Start(req Agent, _ *guest.Nothing) error {
	return h.start(context.Background(), req)
}

// start starts the agent as a DaemonSet does beside a kubelet, which is ready once the
// kubelet has its drivers.
func (h *Host) start(ctx context.Context, req Agent) error {
	agentRoot := filepath.Join(req.Root, "agent")
	for _, dir := range []string{filepath.Join(kubeletDir(req.Root), "plugins_registry"), agentRoot, req.Base, req.Devices} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return err
		}
	}
	h.agent = cluster.NewProgram(cluster.ProgramOptions{
		Name: req.Node + "-agent", Path: req.Program, LogFile: req.Log, Probe: agentProbe,
		Arguments: []string{
			"--kubeconfig=" + req.Kubeconfig, "--node-name=" + req.Node, "--metrics-bind-address=0", "--log-format=console",
			"--kubelet-dir=" + kubeletDir(req.Root), "--root-dir=" + agentRoot, "--local-base=" + req.Base,
			"--device-dir=" + req.Devices, "--max-disks=" + strconv.Itoa(req.MaxDisks),
		},
	})
	if err := h.agent.Start(); err != nil {
		return err
	}
	for _, driver := range []string{stowagev1alpha1.NFSDriver, stowagev1alpha1.LocalDriver, stowagev1alpha1.GCEDriver} {
		err := scenario.Eventually(ctx, func() error {
			_, err := register(ctx, kubeletDir(req.Root), driver)
			return err
		})
		if err != nil {
			return err
		}
	}
	return h.agent.AwaitReady(ctx)
}

// Run runs a suite in a process of its own: Ginkgo runs one, once.
func (*Host) Run(req Plan, got *Outcome) error {
	content, err := json.Marshal(req)
	if err != nil {
		return err
	}
	file := filepath.Join(req.Folder, req.Subject.Name+".json")
	if err := errors.Join(os.MkdirAll(req.Folder, 0o755), os.WriteFile(file, content, 0o600)); err != nil {
		return err
	}
	log, err := os.Create(req.Log)
	if err != nil {
		return err
	}
	defer log.Close()
	suite := exec.Command("/proc/self/exe", sanityArgument, file)
	suite.Stdout, suite.Stderr, suite.Dir = log, log, req.Folder
	if err := suite.Run(); err != nil {
		return fmt.Errorf("running suite %s: %w; the end of its log:\n%s", req.Subject.Name, err, cluster.Tail(req.Log, 20))
	}
	if content, err = os.ReadFile(req.outcomeFile()); err != nil {
		return err
	}
	return json.Unmarshal(content, got)
}

// Mounts is what is mounted below a kubelet's folder.
func (*Host) Mounts(root string, mounts *[]string) error {
	table, err := mount.Kernel{}.Table()
	*mounts = []string{}
	for _, point := range table.Below(kubeletDir(root)) {
		*mounts = append(*mounts, fmt.Sprintf("%s on %s", point.Source, point.Path))
	}
	return err
}
