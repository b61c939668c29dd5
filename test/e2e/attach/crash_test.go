package attach_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// slowly is how long an operation takes in the middle of which something is killed.
const slowly = 3 * time.Second

// Kinds of the cloud's operations.
const (
	attaching = "attachDisk"
	detaching = "detachDisk"
)

// inTheMiddle has the cloud work slowly while something begins, and does something
// else in the middle of the operation that follows.
func (s *spec) inTheMiddle(operation string, begin, then func() error) error {
	if err := s.cloud.slow(s.ctx, slowly); err != nil {
		return err
	}
	// The operation may be over when begin returns.
	begun := scenario.Background(begin)
	err := scenario.Eventually(s.ctx, func() error {
		running, err := s.cloud.running(s.ctx, operation)
		if err == nil && !running {
			err = fmt.Errorf("no operation %s is under way", operation)
		}
		return err
	})
	if err == nil {
		err = then()
	}
	return errors.Join(err, begun())
}

// usually has the cloud work as fast as usual.
func (s *spec) usually() error { return s.cloud.slow(s.ctx, usualLatency) }

// agentKilled: a node's agent is killed where it hurts.
func agentKilled(s *spec) {
	pod := s.pod("served", 1, s.data)
	kill := func() error { return s.stowage.KillAgent(s.ctx, s.nodes[1].Name) }
	start := func() error { return s.stowage.StartAgent(s.ctx, s.nodes[1].Name) }
	scenario.Step("an agent is killed with -9, while its pod's disk is being attached", func() error {
		return s.inTheMiddle(attaching, func() error { return s.stowage.Create(s.ctx, pod) }, kill)
	})
	scenario.Soon(s.ctx, "the disk is attached, and nothing is mounted", func() error {
		return errors.Join(s.isAttached(s.data, 1), s.nodes[1].Mounts(s.ctx, guest.AgentRoot, 0))
	})
	scenario.Step("it is started again, and the pod finds its file", func() error {
		return errors.Join(s.usually(), start(), s.stowage.AwaitMounted(s.ctx, pod), s.finds(pod, s.data, "kept"))
	})
	var mounts []string
	scenario.Step("it is killed while the disk is mounted, and the pod goes on", func() error {
		return errors.Join(s.nodes[1].Call(s.ctx, "Files.Mounts", guest.AgentRoot, &mounts), kill(),
			s.writes(pod, s.data, "alone"), s.finds(pod, s.data, "alone"))
	})
	scenario.Step("it is started again, and the mounts are the same", func() error {
		return errors.Join(start(), s.stays(func() error {
			return errors.Join(s.finds(pod, s.data, "alone"), s.nodes[1].Mounts(s.ctx, guest.AgentRoot, len(mounts)), s.isAttached(s.data, 1))
		}))
	})
	scenario.Step("it is killed again, and the pod is deleted before it is back", func() error {
		return errors.Join(s.writes(pod, s.data, "kept"), kill(), s.stowage.Client.Delete(s.ctx, pod))
	})
	scenario.Step("the disk stays attached while it is mounted without an agent", func() error {
		return s.stays(func() error { return s.isAttached(s.data, 1) })
	})
	scenario.Step("it is started again, and the pod ends", func() error { return errors.Join(start(), s.stowage.AwaitGone(s.ctx, pod)) })
	scenario.Step("nothing is left on the node", func() error { return s.nothingOnNodes(1) })
}

// managerKilled: the manager is killed in the middle of a move.
func managerKilled(s *spec) {
	from, there, back := s.pod("from", 1, s.data), s.pod("there", 2, s.data), s.pod("back", 1, s.data)
	again := func() error {
		return errors.Join(s.stowage.Manager.Kill(), s.usually(), s.stowage.Manager.Start(), s.stowage.Manager.AwaitReady(s.ctx))
	}
	scenario.Step("a pod runs on node 1", func() error { return s.run(from) })
	scenario.Step("it moves to node 2, and the manager is killed with -9 while the disk is detached", func() error {
		return s.inTheMiddle(detaching, func() error { return errors.Join(s.end(from), s.stowage.Create(s.ctx, there)) }, again)
	})
	scenario.Step("a new manager brings the disk there", func() error { return s.arrives(there) })
	scenario.Step("it moves back, and the manager is killed while the disk is attached", func() error {
		return s.inTheMiddle(attaching, func() error { return errors.Join(s.end(there), s.stowage.Create(s.ctx, back)) }, again)
	})
	scenario.Step("a new manager brings the disk back", func() error { return s.arrives(back) })
	scenario.Step("the pod ends", func() error { return s.end(back) })
}

// arrives waits until a pod has its disk, with its file, and its node alone has it.
func (s *spec) arrives(pod *corev1.Pod) error {
	return errors.Join(s.stowage.AwaitMounted(s.ctx, pod), s.finds(pod, s.data, "kept"), s.isAttachedTo(s.data, pod.Spec.NodeName))
}

// inPod is where a pod's volumes are, on its node.
func inPod(pod *corev1.Pod) string { return filepath.Join(guest.AgentRoot, "pods", string(pod.UID)) }
