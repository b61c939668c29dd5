package nfs_test

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

const (
	// agentMemory is the limit of the agent's container: see config/node/daemonset.yaml.
	agentMemory = 512 << 20
	silentPods  = 50
	// anyCall is how each process begins to be named that waits for a server.
	anyCall = "stowage-mount {"
	// mostCalls is how many of them one server has at most.
	mostCalls = 8
)

// crowded: many pods wait for a server that doesn't answer.
func crowded(s *spec) {
	node := s.nodes[1]
	scenario.Step("the agent of node 1 runs in 512 MiB of memory, as in its pod", func() error {
		return errors.Join(s.stowage.KillAgent(s.ctx, node.Name), s.stowage.StartAgentWithin(s.ctx, node.Name, agentMemory))
	})
	var pods []*corev1.Pod
	scenario.Step("fifty pods there have volumes of a server that doesn't answer", func() error {
		for i := range silentPods {
			pods = append(pods, s.silentPod(i))
			if err := s.stowage.Create(s.ctx, pods[i]); err != nil {
				return err
			}
		}
		return nil
	})
	scenario.Soon(s.ctx, "some of them say that others wait for this server already", func() error {
		var missing error
		for _, pod := range pods {
			if missing = s.saysOfVolumes(pod, "wait for server "+silentAddress); missing == nil {
				return nil
			}
		}
		return missing
	})
	for round := range 3 {
		scenario.Step("a pod of another server comes and goes there", func() error {
			return errors.Join(s.fewCalls(node), s.comesAndGoes(fmt.Sprintf("crowded-%d", round), 1), s.fewCalls(node))
		})
		scenario.Step("so does one with a volume on the node's disk", func() error { return s.localComesAndGoes(round) })
	}
	scenario.Step("no process was killed for its memory", func() error {
		var took guest.AgentMemory
		if err := node.Call(s.ctx, "Agent.Memory", guest.Nothing{}, &took); err != nil {
			return err
		}
		fmt.Printf("the agent took %d MiB at most\n", took.Peak>>20)
		if took.Killed > 0 || took.Peak > agentMemory/2 {
			return fmt.Errorf("%d were, of an agent that took %d MiB", took.Killed, took.Peak>>20)
		}
		return nil
	})
	scenario.Step("the pods go", func() error { return s.end(pods...) })
	scenario.Step("the agent runs as before", func() error {
		return errors.Join(s.stowage.KillAgent(s.ctx, node.Name), s.stowage.StartAgent(s.ctx, node.Name))
	})
	scenario.Step("nothing is mounted any more", s.nothingMounted)
}

// silentPod is a pod with a volume of a server that doesn't answer.
func (s *spec) silentPod(number int) *corev1.Pod {
	pod := s.pod(fmt.Sprintf("silent-%d", number), 1)
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		NFS: &corev1.NFSVolumeSource{Server: silentAddress, Path: fmt.Sprintf("/v/%d", number)},
	}}}
	return pod
}

// fewCalls is an error if more processes wait for servers than have places. For a moment there may be none:
// those that gave up come again.
func (s *spec) fewCalls(node *guest.Node) error {
	var count int
	err := scenario.Eventually(s.ctx, func() error {
		err := node.Call(s.ctx, "MountCalls.Count", anyCall, &count)
		if err == nil && count == 0 {
			err = errors.New("no process waits for servers")
		}
		return err
	})
	if err == nil && count > mostCalls {
		err = fmt.Errorf("%d processes wait for servers", count)
	}
	return err
}

// localComesAndGoes has a pod with a volume of the node's own run and end.
func (s *spec) localComesAndGoes(round int) error {
	pod := s.pod(fmt.Sprintf("on-disk-%d", round), 1)
	pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	return quickly(func() error { return errors.Join(s.run(pod), s.end(pod)) })
}
