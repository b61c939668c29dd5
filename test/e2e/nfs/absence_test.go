package nfs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

const (
	// mountCall is how a process that mounts NFS for an agent begins to be named.
	mountCall = `stowage-mount {"Mount":{`
	// bounded is how long a pod's end may take without its server.
	bounded = time.Minute
)

// stopped: a server that stops and starts again under load.
func stopped(s *spec) {
	var claim *corev1.PersistentVolumeClaim
	scenario.Step("a claim is bound", func() (err error) {
		claim, err = s.claimFor("busy", goodClass)
		return err
	})
	var pods []*corev1.Pod
	for n := 1; n <= nodes; n++ {
		scenario.Step(fmt.Sprintf("a pod on node %d writes line after line", n), func() error {
			pod := s.pod(fmt.Sprintf("busy-%d", n), n, claim)
			pods = append(pods, pod)
			if err := s.run(pod); err != nil {
				return err
			}
			return errors.Join(s.nodes[n].Call(s.ctx, "Load.Start", inClaim(pod, claim, nameOf(n)), &guest.Nothing{}), s.progress(s.nodes[n]))
		})
	}
	scenario.Step("the server is killed", s.good.Kill)
	for n := 1; n <= nodes; n++ {
		scenario.Step(fmt.Sprintf("a pod of another server comes and goes on node %d, with its claim", n), func() error {
			return s.comesAndGoes(fmt.Sprintf("during-%d", n), n)
		})
	}
	scenario.Step("the server is started again", func() error { return s.good.Start(s.ctx) })
	for n := 1; n <= nodes; n++ {
		scenario.Step(fmt.Sprintf("the pod on node %d goes on, and every line that was stored is there", n), func() error {
			return errors.Join(s.progress(s.nodes[n]), s.stopLoad(s.nodes[n], filepath.Join(s.good.directoryOf(claim), nameOf(n))))
		})
	}
	scenario.Step("the pods and the claim go", func() error { return errors.Join(s.end(pods...), s.stowage.Delete(s.ctx, claim)) })
	scenario.Step("nothing is mounted any more", s.nothingMounted)
}

// away: pods that come and go while their server is silent, and an agent that is killed at the same time.
func away(s *spec) {
	var old, young *corev1.PersistentVolumeClaim
	var leaver, neighbour, comer *corev1.Pod
	scenario.Step("two pods on node 1 use volumes of a server", func() (err error) {
		if old, err = s.claimFor("old", goodClass); err != nil {
			return err
		}
		if young, err = s.claimFor("young", goodClass); err != nil {
			return err
		}
		leaver, neighbour, comer = s.pod("leaver", 1, old), s.pod("neighbour", 1, young), s.pod("comer", 2, young)
		if err := s.run(leaver, neighbour); err != nil {
			return err
		}
		return errors.Join(s.podWrites(leaver, inClaim(leaver, old, "greeting"), "kept"),
			s.podWrites(neighbour, inClaim(neighbour, young, "greeting"), "kept"))
	})
	scenario.Step("the server is frozen", s.good.Freeze)
	ended := scenario.Background(func() error { return s.endsBounded(leaver) })
	s.agentKilled(comer)
	scenario.Step("a pod of another server comes and goes on node 1 while one of it is unmounted", func() error { return s.comesAndGoes("beside-1", 1) })
	scenario.Step("the pod that was deleted is gone within a minute", ended)
	scenario.Step("an event of it says what that may have cost", func() error {
		return s.stowage.AwaitEvent(s.ctx, leaver.Name, "FailedUnmount", "detached without it")
	})
	scenario.Step("the server goes on", s.good.Thaw)
	scenario.Step("the neighbour was left alone", func() error {
		return s.podFinds(neighbour, inClaim(neighbour, young, "greeting"), "kept")
	})
	scenario.Step("the pod whose agent was killed gets its volume", func() error {
		return errors.Join(s.stowage.AwaitMounted(s.ctx, comer), s.podFinds(comer, inClaim(comer, young, "greeting"), "kept"))
	})
	scenario.Step("a pod made again finds what was stored", func() error {
		again := s.pod("again", 1, old)
		if err := s.run(again); err != nil {
			return err
		}
		return errors.Join(s.podFinds(again, inClaim(again, old, "greeting"), "kept"), s.end(again))
	})
	scenario.Step("pods and claims go", func() error { return errors.Join(s.end(neighbour, comer), s.stowage.Delete(s.ctx, old, young)) })
	scenario.Step("nothing is mounted any more", s.nothingMounted)
}

// endsBounded deletes a pod, and reports whether it is gone soon enough.
func (s *spec) endsBounded(pod *corev1.Pod) error {
	started := time.Now()
	err := s.end(pod)
	if took := time.Since(started); err == nil && took > bounded {
		err = fmt.Errorf("it takes %s, more than %s", took.Round(time.Second), bounded)
	}
	return err
}

// agentKilled kills the agent of a pod's node in the middle of the pod's mount, which
// waits for the server, and starts it again.
func (s *spec) agentKilled(pod *corev1.Pod) {
	scenario.Step("a pod with a volume of that server is made on node 2", func() error { return s.stowage.Create(s.ctx, pod) })
	scenario.Soon(s.ctx, "its volume is being mounted", func() error {
		if count, err := s.mountCalls(pod); err != nil || count == 0 {
			return errors.Join(err, errors.New("no process mounts it"))
		}
		return nil
	})
	scenario.Step("the agent of node 2 is killed with -9", func() error { return s.stowage.KillAgent(s.ctx, pod.Spec.NodeName) })
	scenario.Soon(s.ctx, "no process goes on mounting for it", func() error {
		count, err := s.mountCalls(pod)
		if err == nil && count > 0 {
			err = fmt.Errorf("%d do", count)
		}
		return err
	})
	scenario.Step("it is started again, and is ready", func() error { return s.stowage.StartAgent(s.ctx, pod.Spec.NodeName) })
}

// MountCalls are processes that wait for servers for an agent.
type MountCalls struct{}

// Count is how many there are whose command begins so.
func (MountCalls) Count(beginning string, count *int) error {
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, process := range processes {
		command, _ := os.ReadFile(process) // one that has ended isn't one of them
		if strings.HasPrefix(strings.ReplaceAll(string(command), "\x00", " "), beginning) {
			*count++
		}
	}
	return err
}

func (s *spec) mountCalls(pod *corev1.Pod) (count int, err error) {
	err = s.stowage.NodeOf(pod).Call(s.ctx, "MountCalls.Count", mountCall, &count)
	return count, err
}
