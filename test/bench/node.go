package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/test/fixture"
)

const (
	// mounterNode is the node that the pods of the benchmark node run on.
	mounterNode = "bench-mounter"
	// idleFor is how long an agent with nothing to do is looked at.
	idleFor = 30 * time.Second
	// leavingSeconds is the grace period that pods are deleted with: they have no
	// containers that would use it, but 0 would take them from the API server at once.
	leavingSeconds = 1
)

// nodeRound is what came out when pods came to a node, or went from it.
type nodeRound struct {
	Program, Story, Phase string
	Pods, Volumes         int
	// Seconds are from the first pod that was seen, or seen to be deleted, to the last
	// whose volumes were there, or that was gone. Latency is that of each pod.
	Seconds  float64
	Latency  latency
	Requests writes
	CPU      milliseconds
}

// nodeIdle is what an agent costs whose pods have all that they need.
type nodeIdle struct {
	Pods, Volumes int
	Seconds       float64
	// PartOfCore is the CPU time used, to the time that passed.
	PartOfCore float64
}

// mounters are the programs that mount: the node agent, and the bare client.
func (b *testbed) mounters(o options) (agent, bare contender, err error) {
	self, err := os.Executable()
	if err != nil {
		return agent, bare, fmt.Errorf("finding this program: %w", err)
	}
	if _, err := os.Stat(o.agent); err != nil {
		return agent, bare, fmt.Errorf("finding the node agent (make build makes it): %w", err)
	}
	base := filepath.Join(b.dir, "base")
	agent = contender{name: agentName, command: []string{
		o.agent, "--kubeconfig=" + b.kubeconfig, "--node-name=" + mounterNode, "--follow-pods", "--root-dir=" + b.podsFolder(agentName),
		"--local-base=" + base, "--metrics-bind-address=0", "--health-probe-bind-address=0",
	}}
	bare = contender{name: bareName, command: []string{self, bareNodeArgument, b.kubeconfig, b.podsFolder(bareName)}}
	return agent, bare, os.MkdirAll(base, 0o755)
}

func (b *testbed) podsFolder(program string) string { return filepath.Join(b.dir, "pods-of-"+program) }

// measureNode has the volumes of pods mounted on this machine and taken away again, by
// the node agent and by the bare client, in turn.
func (b *testbed) measureNode(o options, report *report) (err error) {
	if err := (mount.Kernel{}).Check(); err != nil {
		return fmt.Errorf("mounting on this machine: %w", err)
	}
	agent, bare, err := b.mounters(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.clearMounter()) }()
	if err := b.client.Create(b.ctx, fixture.Node(mounterNode)); err != nil {
		return fmt.Errorf("creating a node: %w", err)
	}
	report.printNodeHeader(os.Stdout)
	for _, story := range nodeStories {
		if err := b.prepareStory(story); err != nil {
			return fmt.Errorf("preparing %s: %w", story.name, err)
		}
		for range o.rounds {
			for _, program := range []contender{agent, bare} {
				if err := b.nodeRound(program, story, report); err != nil {
					return fmt.Errorf("%s with %s: %w", story.name, program.name, err)
				}
			}
		}
		if err := b.clear(); err != nil {
			return err
		}
	}
	return b.measureIdleNode(agent, report)
}

// clearMounter removes what is left, mounts too.
func (b *testbed) clearMounter() error {
	errs := []error{b.clear(), b.remove(fixture.Node(mounterNode)), b.clearShown()}
	for _, program := range []string{agentName, bareName} {
		errs = append(errs, mount.UnmountBelow(mount.Kernel{}, b.podsFolder(program)))
	}
	return errors.Join(errs...)
}

// nodeRound lets a program mount what a story's pods need, and take it away.
func (b *testbed) nodeRound(program contender, story nodeStory, report *report) error {
	p, err := b.startMounter(program)
	if err != nil {
		return err
	}
	defer p.stop()
	for _, step := range []struct {
		phase string
		act   func(i int) error
		done  func(*podObserver) map[string]time.Duration
	}{
		{mounting, func(i int) error { return b.client.Create(b.ctx, story.pod(i)) }, (*podObserver).mounted},
		{unmounting, func(i int) error {
			return b.client.Delete(b.ctx, story.pod(i), client.GracePeriodSeconds(leavingSeconds))
		}, (*podObserver).gone},
	} {
		result := nodeRound{Program: program.name, Story: story.name, Phase: step.phase, Pods: story.pods, Volumes: len(story.volumes(0))}
		if err := b.nodePhase(&result, p, step.act, step.done); err != nil {
			return fmt.Errorf("%s: %w", step.phase, err)
		}
		report.addNode(os.Stdout, result)
	}
	return nil
}

// nodePhase acts on all pods, and waits until that has come to its end for each.
func (b *testbed) nodePhase(result *nodeRound, p *process, act func(int) error, done func(*podObserver) map[string]time.Duration) error {
	before, err := b.awaitQuietRequests()
	if err != nil {
		return err
	}
	used, err := p.usage()
	if err != nil {
		return err
	}
	watching, err := b.observePods()
	if err != nil {
		return err
	}
	defer watching.stop()
	if err := inParallel(b.ctx, result.Pods, act); err != nil {
		return err
	}
	times, err := watching.await(b.ctx, result.Pods, p, done)
	if err != nil {
		return err
	}
	result.Seconds, result.Latency = watching.took().Seconds(), latencyOf(times)
	after, err := b.awaitQuietRequests()
	if err != nil {
		return err
	}
	now, err := p.usage()
	result.Requests, result.CPU = after.since(before), inMilliseconds(now.cpu-used.cpu)
	return err
}

// awaitQuietRequests counts all requests once nobody writes any more.
func (b *testbed) awaitQuietRequests() (writes, error) {
	if _, err := b.awaitQuiet(); err != nil {
		return nil, err
	}
	return b.countRequests(isAnswered)
}

// startMounter starts a program, and waits until it mounts what pods need.
func (b *testbed) startMounter(program contender) (*process, error) {
	p, err := b.run(program)
	if err != nil {
		return nil, err
	}
	canary := canaryPod()
	watching, err := b.observePods()
	if err == nil {
		defer watching.stop()
		if err = b.client.Create(b.ctx, canary); err == nil {
			_, err = watching.await(b.ctx, 1, p, (*podObserver).mounted)
		}
	}
	if err == nil {
		err = b.client.Delete(b.ctx, canary, client.GracePeriodSeconds(leavingSeconds))
	}
	if err == nil {
		_, err = watching.await(b.ctx, 1, p, (*podObserver).gone)
	}
	if err != nil {
		p.stop()
		return nil, fmt.Errorf("waiting for %s to mount a first pod's volumes: %w", program.name, err)
	}
	return p, nil
}

// measureIdleNode looks at an agent whose pods have all that they need.
func (b *testbed) measureIdleNode(agent contender, report *report) error {
	story := crowdedNode
	if err := b.prepareStory(story); err != nil {
		return err
	}
	p, err := b.startMounter(agent)
	if err != nil {
		return err
	}
	defer p.stop()
	result := nodeRound{Pods: story.pods}
	if err := b.nodePhase(&result, p, func(i int) error { return b.client.Create(b.ctx, story.pod(i)) }, (*podObserver).mounted); err != nil {
		return fmt.Errorf("filling a node: %w", err)
	}
	before, err := p.usage()
	if err != nil {
		return err
	}
	select {
	case <-b.ctx.Done():
		return context.Cause(b.ctx)
	case <-time.After(idleFor):
	}
	after, err := p.usage()
	if err != nil {
		return errors.Join(err, p.alive())
	}
	report.NodeIdle = &nodeIdle{
		Pods: story.pods, Volumes: len(story.volumes(0)), Seconds: idleFor.Seconds(),
		PartOfCore: float64(after.cpu-before.cpu) / float64(idleFor),
	}
	return b.nodePhase(&result, p, func(i int) error {
		return b.client.Delete(b.ctx, story.pod(i), client.GracePeriodSeconds(leavingSeconds))
	}, (*podObserver).gone)
}

func canaryPod() *corev1.Pod {
	pod := fixture.Pod("canary", mounterNode)
	pod.Spec.Volumes = []corev1.Volume{emptyVolume("first")}
	return pod
}
