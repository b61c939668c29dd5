package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/fixture"
)

// phase is one part of a round of the benchmark attach.
type phase string

const (
	attaching phase = "attach"
	moving    phase = "move"
	detaching phase = "detach"
)

// attachPhase is what came out of one phase.
type attachPhase struct {
	Program string
	Phase   phase
	// Volumes are those that were attached, detached, or moved.
	Volumes   int
	Seconds   float64
	PerSecond float64
	// WritesPerVolume are those to attachments, nodes and volumes, failed ones too,
	// OthersPerVolume those to all else.
	Writes                           writes
	WritesPerVolume, OthersPerVolume float64
	CPUPerVolume                     milliseconds
}

// measureAttach has the volumes of a fleet attached, moved to other nodes, and
// detached, by the manager and by the bare client, in turn.
func (b *testbed) measureAttach(o options, report *report) (err error) {
	f := fleet{nodes: o.attachNodes, perNode: o.attachVolumes}
	defer func() { err = errors.Join(err, b.clear(), b.clearFleet()) }()
	if err := b.createDisks(); err != nil {
		return fmt.Errorf("creating a StorageBackend: %w", err)
	}
	if err := b.createFleet(span{n: f.nodes}, span{n: f.volumes()}); err != nil {
		return err
	}
	if err := b.createKeepers(f); err != nil {
		return fmt.Errorf("creating pods: %w", err)
	}
	report.printAttachHeader(os.Stdout)
	for range o.rounds {
		if err := b.attachRound(f, report); err != nil {
			return err
		}
		if err := b.bareAttachRound(f, report); err != nil {
			return err
		}
	}
	return nil
}

// clearFleet removes what clear doesn't: pods, nodes and the StorageBackend.
func (b *testbed) clearFleet() error {
	return errors.Join(b.remove(diskBackend()), b.client.DeleteAllOf(b.ctx, &corev1.Node{}),
		b.client.DeleteAllOf(b.ctx, &corev1.Pod{}, client.InNamespace(fixture.Namespace), client.GracePeriodSeconds(0)))
}

// attacher is the manager with disks in memory that are attached in no time.
func (b *testbed) attacher() (contender, error) {
	self, err := os.Executable()
	if err != nil {
		return contender{}, fmt.Errorf("finding this program: %w", err)
	}
	return contender{name: managerName, command: []string{self, attacherArgument, b.kubeconfig}}, nil
}

// startAttacher starts it, and waits until all that it finds is done with.
func (b *testbed) startAttacher() (*process, error) {
	c, err := b.attacher()
	if err != nil {
		return nil, err
	}
	p, err := b.run(c)
	if err != nil {
		return nil, err
	}
	disks := &stowagev1alpha1.StorageBackend{}
	err = wait.PollUntilContextTimeout(b.ctx, canaryPoll, backendTimeout, true, func(ctx context.Context) (bool, error) {
		err := errors.Join(p.alive(), b.client.Get(ctx, client.ObjectKey{Name: class}, disks))
		return meta.IsStatusConditionTrue(disks.Status.Conditions, stowagev1alpha1.ReadyCondition) && disks.Status.Audit != nil, err
	})
	if err == nil {
		_, err = b.awaitQuiet()
	}
	if err != nil {
		p.stop()
		return nil, fmt.Errorf("waiting for the manager to accept a StorageBackend: %w", err)
	}
	return p, nil
}

// attachTour is one program on its way through all phases.
type attachTour struct {
	*testbed
	fleet
	report  *report
	program string
	// running is the program, where it runs before the first phase begins.
	running *process
	// begin makes a phase begin, and returns the program.
	begin func(phase) (*process, error)
}

// attachRound creates pods, has them on other nodes, and deletes them.
func (b *testbed) attachRound(f fleet, report *report) error {
	p, err := b.startAttacher()
	if err != nil {
		return err
	}
	defer p.stop()
	begin := func(phase phase) (*process, error) {
		switch phase {
		case attaching:
			return p, b.createPods(f, 0)
		case moving:
			return p, errors.Join(b.deletePods(f, 0), b.createPods(f, 1))
		default:
			return p, b.deletePods(f, 1)
		}
	}
	tour := &attachTour{testbed: b, fleet: f, report: report, program: managerName, running: p, begin: begin}
	return tour.goOn()
}

// bareAttachRound has the bare client send the same writes; no pods are needed for that.
func (b *testbed) bareAttachRound(f fleet, report *report) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	begin := func(phase phase) (*process, error) {
		return b.run(contender{name: bareName, command: []string{
			self, bareAttachArgument, b.kubeconfig, string(phase), strconv.Itoa(f.nodes), strconv.Itoa(f.perNode),
		}})
	}
	tour := &attachTour{testbed: b, fleet: f, report: report, program: bareName, begin: begin}
	return tour.goOn()
}

// nowhere is no turn of the fleet: nothing is attached.
const nowhere = -1

func (t *attachTour) goOn() error {
	for _, step := range []struct {
		phase phase
		turn  int
	}{{attaching, 0}, {moving, 1}, {detaching, nowhere}} {
		if err := t.pass(step.phase, step.turn); err != nil {
			return fmt.Errorf("phase %s of %s: %w", step.phase, t.program, err)
		}
	}
	return nil
}

// pass lets a phase begin, waits until a turn of the fleet is attached and nothing else
// is, and reports what that took.
func (t *attachTour) pass(phase phase, turn int) error {
	before, err := t.awaitQuiet()
	if err != nil {
		return err
	}
	spent, err := t.spent()
	if err != nil {
		return err
	}
	watching, err := t.observeAttachments()
	if err != nil {
		return err
	}
	p, err := t.begin(phase)
	if err != nil {
		return err
	}
	if t.running == nil {
		defer p.stop()
	}
	took, err := watching.await(t.ctx, t.attachments(turn), p)
	if err != nil {
		return err
	}
	after, err := t.awaitQuiet()
	if err != nil {
		return err
	}
	used, err := p.usage()
	if err != nil {
		return err
	}
	result := attachPhase{Program: t.program, Phase: phase, Volumes: t.volumes(), Seconds: took.Seconds(), Writes: after.since(before)}
	result.sum(used.cpu - spent)
	t.report.addAttach(os.Stdout, result)
	return t.checkNodes(turn)
}

// spent is what CPU time the program used so far.
func (t *attachTour) spent() (time.Duration, error) {
	if t.running == nil {
		return 0, nil
	}
	used, err := t.running.usage()
	return used.cpu, err
}

func (a *attachPhase) sum(cpu time.Duration) {
	own, others := 0, 0
	for name, count := range a.Writes {
		switch {
		case strings.HasPrefix(name, "failed "), strings.HasSuffix(name, " pods"):
		case strings.Contains(name, " volumeattachments"), strings.Contains(name, " nodes"), strings.Contains(name, " persistentvolumes"):
			own += count
		default:
			others += count
		}
	}
	a.PerSecond = float64(a.Volumes) / a.Seconds
	a.CPUPerVolume = inMilliseconds(cpu) / milliseconds(a.Volumes)
	a.WritesPerVolume, a.OthersPerVolume = float64(own)/float64(a.Volumes), float64(others)/float64(a.Volumes)
}

// attachments are the names of what is attached in a turn of the fleet.
func (f fleet) attachments(turn int) map[string]bool {
	names := map[string]bool{}
	if turn == nowhere {
		return names
	}
	for i := range f.volumes() {
		names[f.attachment(i, turn)] = true
	}
	return names
}

func (f fleet) attachment(volume, turn int) string {
	return attachmentName(volume, f.nodeOf(f.group(volume), turn))
}

// checkNodes compares what the nodes are told is attached to them.
func (t *attachTour) checkNodes(turn int) error {
	wanted := t.perNode
	if turn == nowhere {
		wanted = 0
	}
	err := wait.PollUntilContextTimeout(t.ctx, deletePoll, stalled, true, func(ctx context.Context) (bool, error) {
		nodes := &corev1.NodeList{}
		err := t.client.List(ctx, nodes)
		return !slices.ContainsFunc(nodes.Items, func(node corev1.Node) bool { return len(node.Status.VolumesAttached) != wanted }), err
	})
	if err != nil {
		return fmt.Errorf("waiting until each node is told that %d volumes are attached: %w", wanted, err)
	}
	return nil
}
