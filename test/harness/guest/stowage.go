package guest

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/test/harness/cluster"
)

// startTimeout is how long an agent's start may take. It waits until the agent is ready.
const startTimeout = 4 * time.Minute

// Stowage is a whole one: etcd, kube-apiserver and the manager beside the guests, and
// on each guest an agent that follows the node's pods with the node's own credential.
type Stowage struct {
	*cluster.Cluster
	nodes      map[string]*Node
	agentFlags func(node string) []string
}

// Differences are what a test wants otherwise than usual. The zero value is none.
type Differences struct {
	// Register completes a node before it is registered, as a cloud does.
	Register func(*corev1.Node)
	// AgentFlags are further flags of a node's agent.
	AgentFlags func(node string) []string
	// Repository is the one that is installed first, of an upgrade. Empty: this one.
	Repository string
}

// StartStowage starts it. It ends with the test.
func StartStowage(ctx context.Context, folder Folder, nodes []*Node, differences Differences) (*Stowage, error) {
	s := &Stowage{nodes: map[string]*Node{}, agentFlags: differences.AgentFlags}
	var names []string
	for _, node := range nodes {
		s.nodes[node.Name] = node
		names = append(names, node.Name)
	}
	var err error
	s.Cluster, err = cluster.Start(ctx, cluster.Options{
		Dir: folder.ControlPlane(), Address: Address, Nodes: names, Register: differences.Register, Repository: differences.Repository,
		Step: func(string) (done func(error)) { return func(error) {} },
	})
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := s.StartAgent(ctx, name); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// StartAgent starts the agent of a node, and waits until it is ready.
func (s *Stowage) StartAgent(ctx context.Context, node string) error {
	return s.StartAgentWithin(ctx, node, 0)
}

// StartAgentWithin starts the agent of a node, with no more memory than that. 0: there is no
// limit.
func (s *Stowage) StartAgentWithin(ctx context.Context, node string, memory int64) error {
	path, err := s.ProgramPath("node-agent")
	if err != nil {
		return err
	}
	request := AgentFiles{Node: node, Program: path, Kubeconfig: s.Folder.Kubeconfig(node), Memory: memory, Now: time.Now()}
	if s.agentFlags != nil {
		request.Flags = s.agentFlags(node)
	}
	if err := s.nodes[node].CallWithin(ctx, startTimeout, "Agent.Start", request, &Nothing{}); err != nil {
		return fmt.Errorf("starting the agent of %s: %w", node, err)
	}
	return nil
}

// KillAgent ends the agent of a node as a crash does.
func (s *Stowage) KillAgent(ctx context.Context, node string) error {
	return s.nodes[node].Call(ctx, "Agent.Kill", Nothing{}, &Nothing{})
}

// StopAgent asks the agent of a node to end, and waits until it has.
func (s *Stowage) StopAgent(ctx context.Context, node string) error {
	return s.nodes[node].Call(ctx, "Agent.Stop", Nothing{}, &Nothing{})
}

// NodeOf is where a pod is.
func (s *Stowage) NodeOf(pod *corev1.Pod) *Node { return s.nodes[pod.Spec.NodeName] }

// VolumeDir is the directory on its node of a pod's volume of a type, by the name of
// the volume object, or that in the pod where there is none.
func VolumeDir(pod *corev1.Pod, volumeType, name string) string {
	return filepath.Join(AgentRoot, "pods", string(pod.UID), "volumes", volumes.DirName(volumeType), name)
}
