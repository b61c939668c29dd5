package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/test/harness/fixture"
)

const (
	mounterNode = "bench-mounter"
	// leavingSeconds is the grace period that pods are deleted with: they have no
	// containers that would use it, but 0 would take them from the API server at once.
	leavingSeconds = 1
	// nodeCycles are how often a program mounts and unmounts the same pods before the next one takes its turn. Each takes tens of
	// milliseconds: so the programs' medians are of more.
	nodeCycles = 3
)

// nodeIdle is what an agent costs whose pods have all that they need.
type nodeIdle struct {
	Pods, Volumes int
	Seconds       float64
	// PartOfCore is the CPU time used, to the time that passed.
	PartOfCore float64
	// PeakMiB is the most memory that it had in RAM, since before its pods came.
	PeakMiB float64
	// Restart is what it does when it is started again, and the pods are still there.
	Restart restart
}

func (b *testbed) podsFolder(program string) string { return filepath.Join(b.dir, "pods-of-"+program) }

// measureNode has the volumes of pods mounted on this machine and taken away again, by
// the node agent, by the bare client, and by a stock kubelet where one can run, in turn.
func (b *testbed) measureNode() (err error) {
	if err := (mount.Kernel{}).Check(); err != nil {
		return fmt.Errorf("mounting on this machine: %w", err)
	}
	base := filepath.Join(b.dir, "base")
	if err := os.MkdirAll(base, 0o755); err != nil {
		return err
	}
	agent := b.agent(mounterNode, "--follow-pods", "--root-dir="+b.podsFolder(agentName), "--local-base="+base)
	bare := b.part(bareName, "bare-node", b.podsFolder(bareName))
	contenders := []contender{agent, bare}
	kubelet, stop, err := b.stockKubelet()
	if err == nil {
		defer stop()
		contenders = append(contenders, kubelet)
	} else {
		b.report.LeftOut = append(b.report.LeftOut, part{Name: "node, kubelet", Why: err.Error()})
	}
	defer func() { err = errors.Join(err, b.clearMounter()) }()
	b.report.begin("node")
	for _, set := range podSets {
		if err := b.preparePods(set); err != nil {
			return fmt.Errorf("preparing %s: %w", set.name, err)
		}
		err := takeTurns(b.options.rounds, func(c contender) error { return b.nodeRound(c, set) }, contenders...)
		if err = errors.Join(err, b.clear()); err != nil {
			return fmt.Errorf("%s: %w", set.name, err)
		}
	}
	return b.measureIdleNode(agent)
}

func (b *testbed) clearMounter() error {
	errs := []error{b.clear(), b.removeNode(), b.clearShown()}
	for _, program := range []string{agentName, bareName, kubeletName} {
		errs = append(errs, mount.UnmountBelow(mount.Kernel{}, b.podsFolder(program)))
	}
	return errors.Join(errs...)
}

type podPhase struct {
	name string
	act  func(b *testbed, set podSet, i int) error
	done func(*podTimes) map[string]time.Duration
}

var (
	mounting = podPhase{
		name: "mount",
		act:  func(b *testbed, set podSet, i int) error { return b.client.Create(b.ctx, set.pod(i)) },
		done: func(t *podTimes) map[string]time.Duration { return t.had },
	}
	unmounting = podPhase{
		name: "unmount",
		act: func(b *testbed, set podSet, i int) error {
			return b.client.Delete(b.ctx, set.pod(i), client.GracePeriodSeconds(leavingSeconds))
		},
		done: func(t *podTimes) map[string]time.Duration { return t.went },
	}
)

func (b *testbed) nodeRound(c contender, set podSet) error {
	running, err := b.startMounter(c)
	if err != nil {
		return err
	}
	defer running.stop()
	for _, phase := range slices.Repeat([]podPhase{mounting, unmounting}, nodeCycles) {
		got, err := b.nodePhase(running, set, phase)
		if err != nil {
			return err
		}
		b.report.add(got)
	}
	return nil
}

// nodePhase acts on all pods, and waits until that has come to its end for each.
func (b *testbed) nodePhase(running processes, set podSet, phase podPhase) (result, error) {
	seen := newPodTimes()
	times := phase.done(seen)
	m := &measurement{
		result: result{
			Benchmark: "node", Case: set.name + ", " + phase.name, Program: running[0].Name, N: set.pods, Volumes: len(set.volumes(0)),
		},
		running: running,
		views:   []view{{&corev1.PodList{}, seen.see}},
		written: []client.ObjectList{&corev1.PodList{}},
		done:    func() bool { return len(times) >= set.pods },
		begin: func() (processes, error) {
			return running, inParallel(b.ctx, set.pods, func(i int) error { return phase.act(b, set, i) })
		},
		seen: func(r *result) {
			r.took(set.pods, seen.last.Sub(seen.first))
			r.Latency = latencyOf(slices.Collect(maps.Values(times)))
		},
	}
	if _, err := b.measureOnce(m); err != nil {
		return m.result, fmt.Errorf("phase %s of %d pods: %w", phase.name, set.pods, err)
	}
	return m.result, nil
}

// renewNode replaces the node by a new one. The agent refuses one on which a kubelet lately was; and a kubelet refuses pods
// until the node says how many it takes.
func (b *testbed) renewNode() error {
	if err := b.removeNode(); err != nil {
		return err
	}
	node := fixture.Node(mounterNode)
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse(strconv.Itoa(fullNode.pods))}
	return b.client.Create(b.ctx, node)
}

// removeNode removes the node, with what a kubelet makes beside it.
func (b *testbed) removeNode() error {
	drivers := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: mounterNode}}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: mounterNode, Namespace: corev1.NamespaceNodeLease}}
	return errors.Join(b.remove(fixture.Node(mounterNode)), b.remove(drivers), b.remove(lease))
}

func (b *testbed) startMounter(c contender) (processes, error) {
	if err := b.renewNode(); err != nil {
		return nil, fmt.Errorf("making a node: %w", err)
	}
	return b.startReady(func(running processes) error {
		_, err := b.nodePhase(running, first, mounting)
		if err == nil {
			_, err = b.nodePhase(running, first, unmounting)
		}
		return err
	}, c)
}

func (b *testbed) measureIdleNode(agent contender) error {
	idleFor := b.options.nodeIdle
	if idleFor == 0 {
		return nil
	}
	if err := b.preparePods(fullNode); err != nil {
		return err
	}
	running, err := b.startMounter(agent)
	if err != nil {
		return err
	}
	defer func() { running.stop() }()
	if _, err := b.nodePhase(running, fullNode, mounting); err != nil {
		return fmt.Errorf("filling a node: %w", err)
	}
	before, err := running.usage()
	if err != nil {
		return err
	}
	select {
	case <-b.ctx.Done():
		return context.Cause(b.ctx)
	case <-time.After(idleFor):
	}
	after, err := running.usage()
	if err != nil {
		return errors.Join(err, running.alive())
	}
	idle := &nodeIdle{
		Pods: fullNode.pods, Volumes: len(fullNode.volumes(0)), Seconds: idleFor.Seconds(),
		PartOfCore: float64(after.cpu-before.cpu) / float64(idleFor), PeakMiB: float64(after.peak) / (1 << 20),
	}
	if running, idle.Restart, err = b.restart(running, agent); err != nil {
		return fmt.Errorf("starting the agent again: %w", err)
	}
	b.report.NodeIdle = idle
	fmt.Fprintf(b.report.out, "\nAn agent with %d pods that have %d volumes each: %.0f MiB at most; started again, at work for %.2f s, with %d requests\n",
		idle.Pods, idle.Volumes, idle.PeakMiB, idle.Restart.Seconds, idle.Restart.Reads)
	_, err = b.nodePhase(running, fullNode, unmounting)
	return err
}
