package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/fixture"
)

const (
	localNode = "bench-node"
	// localSize is what each claim asks for: room for an ext4.
	localSize = "16Mi"
	agentName = "node-agent"
)

var localLayouts = []stowagev1alpha1.LocalLayout{stowagev1alpha1.LayoutDirectory, stowagev1alpha1.LayoutImage}

// localRound is what came out when n claims got volumes on one node's disk at once.
type localRound struct {
	Program string
	Layout  stowagev1alpha1.LocalLayout
	N       int
	// Bound is how many of the claims got a volume.
	Bound   int
	Seconds float64
	// Latency is since a claim was first written to.
	Latency latency
	// Requests are all that the API server answered until the last claim was bound, reads
	// too, by verb and resource. CPU is that of each program until then; what programs
	// that it runs need, mkfs, is left out.
	Requests writes
	CPU      map[string]milliseconds
	// DeletedPerSecond is how fast claims, volumes and what is on the disk went, and
	// DeleteRequests what that took; Left is how many of them all remained. Of the manager
	// and the agent only.
	DeletedPerSecond float64
	DeleteRequests   writes
	Left             int
}

// localStory is the benchmark of one layout.
type localStory struct {
	*testbed
	layout         stowagev1alpha1.LocalLayout
	n              int
	folder         string
	manager, agent contender
	bare           contender
}

// measureLocal has volumes made on this machine's disk, by manager and node agent and
// by the bare client, in turn.
func (b *testbed) measureLocal(o options, report *report) error {
	report.printLocalHeader(os.Stdout)
	for _, layout := range localLayouts {
		story, err := b.newLocalStory(o, layout)
		if err != nil {
			return err
		}
		if err := story.measure(o.rounds, report); err != nil {
			return fmt.Errorf("layout %s: %w", layout, err)
		}
	}
	return nil
}

func (b *testbed) newLocalStory(o options, layout stowagev1alpha1.LocalLayout) (*localStory, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	if _, err := os.Stat(o.agent); err != nil {
		return nil, fmt.Errorf("finding the node agent (make build makes it): %w", err)
	}
	s := &localStory{testbed: b, layout: layout, n: o.locals, folder: filepath.Join(b.dir, "disks"), manager: b.subject}
	s.agent = contender{name: agentName, command: []string{
		o.agent, "--kubeconfig=" + b.kubeconfig, "--node-name=" + localNode, "--local-base=" + b.dir,
		"--metrics-bind-address=0", "--health-probe-bind-address=0",
	}}
	s.bare = contender{name: bareName, command: []string{self, bareLocalArgument, b.kubeconfig, string(layout), filepath.Join(b.dir, "bare")}}
	return s, nil
}

func (s *localStory) measure(rounds int, report *report) (err error) {
	defer func() { err = errors.Join(err, s.tidy()) }()
	if err := s.prepare(); err != nil {
		return err
	}
	for range rounds {
		for _, round := range []func() (localRound, error){s.round, s.bareRound} {
			result, err := round()
			if err != nil {
				return err
			}
			report.addLocal(os.Stdout, result)
		}
	}
	return nil
}

// prepare has the manager and the agent accept a backend.
func (s *localStory) prepare() error {
	node := fixture.Node(localNode)
	ready := node.DeepCopy()
	if err := s.client.Create(s.ctx, node); err != nil {
		return fmt.Errorf("creating a node: %w", err)
	}
	node.Status = ready.Status
	if err := s.client.Status().Update(s.ctx, node); err != nil {
		return fmt.Errorf("making a node Ready: %w", err)
	}
	if err := s.client.Create(s.ctx, s.backend()); err != nil {
		return fmt.Errorf("creating a StorageBackend: %w", err)
	}
	programs, err := s.start()
	defer programs.stop()
	if err != nil {
		return err
	}
	object := s.backend()
	err = wait.PollUntilContextTimeout(s.ctx, canaryPoll, backendTimeout, true, func(ctx context.Context) (bool, error) {
		err := errors.Join(programs.alive(), s.client.Get(ctx, client.ObjectKeyFromObject(object), object))
		return meta.IsStatusConditionTrue(object.Status.Conditions, stowagev1alpha1.ReadyCondition), err
	})
	if err != nil {
		return fmt.Errorf("waiting for a StorageBackend to be Ready: %w", err)
	}
	return nil
}

func (s *localStory) backend() *stowagev1alpha1.StorageBackend {
	return fixture.LocalBackend(class, func(object *stowagev1alpha1.StorageBackend) {
		object.Spec.Local.Path = stowagev1alpha1.AbsolutePath(s.folder)
		object.Spec.Local.Layout = s.layout
		object.Spec.MaxConcurrentOperations = 1000
		object.Spec.StorageClass.VolumeBindingMode = storagev1.VolumeBindingImmediate
	})
}

// processes are a manager and an agent.
type processes []*process

func (p processes) alive() error {
	var errs []error
	for _, process := range p {
		errs = append(errs, process.alive())
	}
	return errors.Join(errs...)
}

func (p processes) stop() {
	for _, process := range p {
		process.stop()
	}
}

func (s *localStory) start() (processes, error) {
	var started processes
	for _, c := range []contender{s.agent, s.manager} {
		p, err := s.run(c)
		if err != nil {
			return started, err
		}
		started = append(started, p)
	}
	return started, nil
}

// round lets manager and agent make volumes for claims that are there before, and
// remove them all.
func (s *localStory) round() (result localRound, err error) {
	defer func() { err = errors.Join(err, s.clear()) }()
	watching, err := s.stand()
	if err != nil {
		return result, err
	}
	programs, err := s.start()
	defer programs.stop()
	if err != nil {
		return result, err
	}
	if result, err = s.await(s.manager.name, watching, programs); err != nil {
		return result, errors.Join(err, programs.alive())
	}
	err = s.deleteAll(&result, programs)
	return result, err
}

// bareRound lets the bare client do the same, and removes everything after.
func (s *localStory) bareRound() (result localRound, err error) {
	defer func() {
		err = errors.Join(err, s.clear(), s.clearLocalVolumes(), os.RemoveAll(filepath.Join(s.dir, "bare")))
	}()
	watching, err := s.stand()
	if err != nil {
		return result, err
	}
	p, err := s.run(s.bare)
	if err != nil {
		return result, err
	}
	defer p.stop()
	return s.await(bareName, watching, processes{p})
}

// stand creates the claims, and watches them from then on.
func (s *localStory) stand() (*observer, error) {
	_, err := s.create(span{n: s.n}, func(i int) client.Object {
		return fixture.Claim(fixture.ClaimNamed(claimName(i)), fixture.InClass(class), fixture.Asking(localSize))
	})
	if err != nil {
		return nil, err
	}
	if _, err := s.awaitQuiet(); err != nil {
		return nil, err
	}
	return s.observe()
}

// await lets programs, the last of which binds, go on until all claims are bound.
func (s *localStory) await(program string, watching *observer, programs processes) (localRound, error) {
	result := localRound{Program: program, Layout: s.layout, N: s.n}
	before, err := s.countRequests(isAnswered)
	if err != nil {
		return result, err
	}
	_, bound, err := watching.awaitBound(s.ctx, s.n, programs[len(programs)-1])
	if err != nil {
		return result, fmt.Errorf("waiting for %s to make volumes: %w", program, err)
	}
	after, err := s.countRequests(isAnswered)
	if err != nil {
		return result, err
	}
	times, first := make([]time.Duration, 0, len(bound)), watching.begun()
	for _, when := range bound {
		times = append(times, max(0, when.Sub(first)))
	}
	result.Bound, result.Seconds, result.Latency = len(bound), lastOf(bound).Sub(first).Seconds(), latencyOf(times)
	result.Requests = after.since(before)
	result.CPU, err = programs.cpu()
	return result, err
}

// cpu is what each of them used since it started.
func (p processes) cpu() (map[string]milliseconds, error) {
	used := map[string]milliseconds{}
	for _, process := range p {
		spent, err := process.usage()
		if err != nil {
			return nil, err
		}
		used[strings.TrimSuffix(filepath.Base(process.log), ".log")] = inMilliseconds(spent.cpu)
	}
	return used, nil
}

func localCapacity() resource.Quantity { return resource.MustParse(localSize) }
