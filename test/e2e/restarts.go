package main

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/kubenode"
)

// everyKind is a class of each kind of volume.
var everyKind = []string{directories, images, shared, disks}

// agentProgram is how a node agent's process begins.
const agentProgram = "/usr/local/bin/node-agent"

// kubeletRestarts: pods write on while the kubelet is away, and what changed meanwhile it
// sees to when it is back.
func kubeletRestarts(s *scene) {
	node := s.bed.Node(node1)
	writing, leaving := s.writers("stays", node1, everyKind...), s.writers("leaves", node1, disks)
	s.Do("pods write to volumes of each kind", func() error { return errors.Join(writing.start(), leaving.start()) })
	var stayed func() error
	s.Do("the kubelet of node1 is killed", func() (err error) {
		if stayed, err = s.watchMounts(s.bed.Nodes, writing); err != nil {
			return err
		}
		return node.KillKubelet()
	})
	s.Do("a pod with a disk is deleted", func() error { return s.bed.Client.Delete(s.Ctx, leaving.pods[0]) })
	s.Do("the kubelet starts again", node.StartKubelet)
	s.Soon("and is Ready, with all drivers", func() error { return errors.Join(s.bed.IsReady(s.Ctx, node1), s.bed.hasDrivers(node)) })
	s.Do("the pod is gone", func() error { return s.gone(leaving.pods[0]) })
	s.Soon("its disk isn't attached any more", func() error {
		return errors.Join(s.isAttachedTo(leaving.claims[0]), s.isNowhereOn(node1, leaving.claims[0]))
	})
	s.Do("the others write on, and didn't notice", writing.goOn)
	later := s.writers("later", node1, images, disks)
	s.Do("new ones run", later.start)
	s.Do("they go", later.end)
	s.Do("no mount of the others changed", func() error { return stayed() })
	s.Do("they go, too", writing.end)
}

// agentRestarts: pods write on while the node agent is away, and the kubelet has it back
// by itself.
func agentRestarts(s *scene) {
	node := s.bed.Node(node2)
	writing := s.writers("stays", node2, everyKind...)
	s.Do("pods write to volumes of each kind", writing.start)
	// node1 may be dead: it is another story's.
	running := []*kubenode.Node{node, s.bed.Node(machine)}
	var stayed func() error
	s.Do("the agent of node2 is deleted", func() (err error) {
		if stayed, err = s.watchMounts(running, writing); err != nil {
			return err
		}
		agent, err := s.bed.agentOn(node2)
		if err != nil {
			return err
		}
		return s.remove(agent)
	})
	s.Do("a pod with volumes of each kind that comes now runs soon", func() error { return s.comesAndGoes("first") })
	var restarts int32
	s.Do("the agent's process is killed with -9", func() error {
		agent, err := s.bed.agentOn(node2)
		if err != nil {
			return err
		}
		restarts = agent.Status.ContainerStatuses[0].RestartCount
		return node.Host.Ask("Signals.Kill", agentProgram, &kubenode.Nothing{})
	})
	s.Do("again a pod that comes now runs soon", func() error { return s.comesAndGoes("second") })
	s.Soon("the kubelet has started the agent again", func() error {
		agent, err := s.bed.agentOn(node2)
		if err == nil && agent.Status.ContainerStatuses[0].RestartCount != restarts+1 {
			err = fmt.Errorf("it was started again %d times", agent.Status.ContainerStatuses[0].RestartCount-restarts)
		}
		return errors.Join(err, s.bed.agentsAreReady(), s.bed.hasDrivers(node))
	})
	s.Do("the first ones write on, and didn't notice", writing.goOn)
	s.Do("no mount of theirs changed", func() error { return stayed() })
	s.Do("they go", writing.end)
}

// comesAndGoes runs new pods with volumes of each kind on node2.
func (s *scene) comesAndGoes(name string) error {
	coming := s.writers(name, node2, everyKind...)
	return errors.Join(coming.start(), coming.end())
}

// agentOn is the pod of a node's agent.
func (b *bed) agentOn(node string) (*corev1.Pod, error) {
	all := &corev1.PodList{}
	err := b.Client.List(b.story.Ctx, all, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/component": "node-agent"})
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
