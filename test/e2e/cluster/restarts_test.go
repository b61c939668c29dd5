package cluster_test

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/kube"
	"github.com/stowage-dev/stowage/test/harness/kubenode"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// everyKind is a class of each kind of volume.
var everyKind = []string{directories, images, shared, disks}

// agentProgram is how a node agent's process begins.
const agentProgram = "/usr/local/bin/node-agent"

// kubeletRestarts: pods write on while the kubelet is away. When it is back, it sees to what changed.
func kubeletRestarts(n *namespace) {
	node := n.cluster.Node(node1)
	writing, leaving := n.writers("stays", node1, everyKind...), n.writers("leaves", node1, disks)
	scenario.Step("pods write to volumes of each kind", func() error { return errors.Join(writing.start(), leaving.start()) })
	var stayed func() error
	scenario.Step("the kubelet of node1 is killed", func() (err error) {
		if stayed, err = n.watchMounts(n.cluster.Nodes, writing); err != nil {
			return err
		}
		return node.Do(n.ctx, kubenode.KillKubelet)
	})
	scenario.Step("a pod with a disk is deleted", func() error { return n.cluster.Client.Delete(n.ctx, leaving.pods[0]) })
	scenario.Step("the kubelet starts again", func() error { return node.Do(n.ctx, kubenode.StartKubelet) })
	n.Soon("and is Ready, with all drivers", func() error { return errors.Join(n.cluster.IsReady(n.ctx, node1), n.cluster.HasDrivers(n.ctx, node)) })
	scenario.Step("the pod is gone", func() error { return n.gone(leaving.pods[0]) })
	n.Soon("its disk isn't attached any more", func() error {
		return errors.Join(n.isAttachedTo(leaving.claims[0]), n.isNowhereOn(node1, leaving.claims[0]))
	})
	scenario.Step("the others write on, and didn't notice", writing.goOn)
	later := n.writers("later", node1, images, disks)
	scenario.Step("new ones run", later.start)
	scenario.Step("they go", later.end)
	scenario.Step("no mount of the others changed", func() error { return stayed() })
	scenario.Step("they go, too", writing.end)
}

// agentRestarts: pods write on while the node agent is away, and the kubelet has it back
// by itself.
func agentRestarts(n *namespace) {
	node := n.cluster.Node(node2)
	writing := n.writers("stays", node2, everyKind...)
	scenario.Step("pods write to volumes of each kind", writing.start)
	// node1 may be dead: it is another spec's.
	running := []*kubenode.Node{node, n.cluster.Node(machine)}
	var stayed func() error
	scenario.Step("the agent of node2 is deleted", func() (err error) {
		if stayed, err = n.watchMounts(running, writing); err != nil {
			return err
		}
		agent, err := n.agentOn(node2)
		if err != nil {
			return err
		}
		return n.remove(agent)
	})
	scenario.Step("a pod with volumes of each kind that comes now runs soon", func() error { return n.comesAndGoes("first") })
	var restarts int32
	scenario.Step("the agent's process is killed with -9", func() error {
		agent, err := n.agentOn(node2)
		if err != nil {
			return err
		}
		restarts = agent.Status.ContainerStatuses[0].RestartCount
		return node.Host.Call(n.ctx, "Signals.Kill", agentProgram, &guest.Nothing{})
	})
	scenario.Step("again a pod that comes now runs soon", func() error { return n.comesAndGoes("second") })
	n.Soon("the kubelet has started the agent again", func() error {
		agent, err := n.agentOn(node2)
		if err == nil && agent.Status.ContainerStatuses[0].RestartCount <= restarts {
			err = fmt.Errorf("its container has started %d times, as before", restarts)
		}
		return errors.Join(err, n.cluster.AgentsAreReady(n.ctx), n.cluster.HasDrivers(n.ctx, node))
	})
	scenario.Step("the first ones write on, and didn't notice", writing.goOn)
	scenario.Step("no mount of theirs changed", func() error { return stayed() })
	scenario.Step("they go", writing.end)
}

// comesAndGoes runs new pods with volumes of each kind on node2.
func (n *namespace) comesAndGoes(name string) error {
	coming := n.writers(name, node2, everyKind...)
	return errors.Join(coming.start(), coming.end())
}

// agentOn is the pod of a node's agent.
func (n *namespace) agentOn(node string) (*corev1.Pod, error) {
	all := &corev1.PodList{}
	err := n.cluster.Client.List(n.ctx, all, client.InNamespace(kube.System), client.MatchingLabels{"app.kubernetes.io/component": "node-agent"})
	if err != nil {
		return nil, err
	}
	for i := range all.Items {
		if agent := &all.Items[i]; agent.Spec.NodeName == node && agent.DeletionTimestamp == nil && len(agent.Status.ContainerStatuses) > 0 {
			return agent, nil
		}
	}
	return nil, fmt.Errorf("%s has no agent", node)
}
