package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/fixture"
)

type phase string

const (
	attaching phase = "attach"
	moving    phase = "move"
	detaching phase = "detach"
)

// attachPhases measures all phases, each with the turn of the fleet that it ends with.
func attachPhases(measure func(phase phase, turn int) error) error {
	for _, step := range []struct {
		phase phase
		turn  int
	}{{attaching, 0}, {moving, 1}, {detaching, nowhere}} {
		if err := measure(step.phase, step.turn); err != nil {
			return fmt.Errorf("phase %s: %w", step.phase, err)
		}
	}
	return nil
}

// measureAttach has the volumes of a fleet attached, moved to other nodes, and
// detached, by the manager and by the bare client, in turn.
func (b *testbed) measureAttach() (err error) {
	f := fleet{nodes: b.options.attachNodes, perNode: b.options.attachVolumes}
	defer func() { err = errors.Join(err, b.clear(), b.clearFleet()) }()
	if err := b.client.Create(b.ctx, diskBackend()); err != nil {
		return fmt.Errorf("creating a StorageBackend: %w", err)
	}
	if err := b.createFleet(span{n: f.nodes}, span{n: f.volumes()}); err != nil {
		return err
	}
	if err := b.createPods(f, f.keeper); err != nil {
		return fmt.Errorf("creating pods: %w", err)
	}
	b.report.begin("attach")
	measure := func(c contender) error {
		if c.name == bareName {
			return b.bareAttachRound(f)
		}
		return b.attachRound(f)
	}
	return takeTurns(b.options.rounds, measure, contender{name: managerName}, contender{name: bareName})
}

func (b *testbed) clearFleet() error {
	return errors.Join(b.remove(diskBackend()), b.client.DeleteAllOf(b.ctx, &corev1.Node{}),
		b.client.DeleteAllOf(b.ctx, &corev1.Pod{}, client.InNamespace(fixture.Namespace), client.GracePeriodSeconds(0)))
}

func (b *testbed) startAttacher() (processes, error) {
	return b.startReady(func(running processes) error {
		err := b.awaitBackend(running, true)
		if err == nil {
			_, err = b.awaitQuiet()
		}
		return err
	}, b.part(managerName, "attacher"))
}

func (b *testbed) attachRound(f fleet) error {
	running, err := b.startAttacher()
	if err != nil {
		return err
	}
	defer running.stop()
	begins := map[phase]func() error{
		attaching: func() error { return b.createPods(f, f.inTurn(0)) },
		moving:    func() error { return errors.Join(b.deletePods(f, 0), b.createPods(f, f.inTurn(1))) },
		detaching: func() error { return b.deletePods(f, 1) },
	}
	own := map[phase]requests{
		attaching: {"POST pods": f.nodes}, moving: {"POST pods": f.nodes, "DELETE pods": f.nodes}, detaching: {"DELETE pods": f.nodes},
	}
	return attachPhases(func(phase phase, turn int) error {
		m := &measurement{running: running, own: own[phase]}
		m.begin = func() (processes, error) { return running, begins[phase]() }
		_, err := b.attachPhase(f, phase, turn, m)
		return err
	})
}

// bareAttachRound has the bare client send the same writes; no pods are needed for that.
func (b *testbed) bareAttachRound(f fleet) error {
	return attachPhases(func(phase phase, turn int) error {
		m := &measurement{begin: func() (processes, error) {
			return b.start(b.part(bareName, "bare-attach", string(phase), strconv.Itoa(f.nodes), strconv.Itoa(f.perNode)))
		}}
		running, err := b.attachPhase(f, phase, turn, m)
		running.stop()
		return err
	})
}

// attachPhase measures until a turn of the fleet is attached, and nothing else is.
func (b *testbed) attachPhase(f fleet, phase phase, turn int, m *measurement) (running processes, err error) {
	seen, err := b.attachments()
	if err != nil {
		return nil, err
	}
	wanted, off := f.attachments(turn), 0
	m.views = []view{{&storagev1.VolumeAttachmentList{}, seen.see}}
	m.done = func() bool { off = seen.off(wanted); return off == 0 }
	m.seen = func(r *result) { r.took(f.volumes(), seen.last.Sub(seen.first)) }
	m.resources = []string{"volumeattachments", "nodes", "persistentvolumes"}
	m.written = []client.ObjectList{&storagev1.VolumeAttachmentList{}, &corev1.NodeList{}}
	m.Benchmark, m.Case, m.N = "attach", string(phase), f.volumes()
	if running, err = b.measureOnce(m); err != nil {
		return running, fmt.Errorf("with %d of %d attachments yet to come or to go: %w", off, len(wanted), err)
	}
	b.report.add(m.result)
	return running, b.awaitVolumesAttached(f, turn)
}

func (b *testbed) awaitVolumesAttached(f fleet, turn int) error {
	wanted := f.perNode
	if turn == nowhere {
		wanted = 0
	}
	err := wait.PollUntilContextTimeout(b.ctx, deletePoll, stalled, true, func(ctx context.Context) (bool, error) {
		nodes := &corev1.NodeList{}
		err := b.client.List(ctx, nodes)
		return !slices.ContainsFunc(nodes.Items, func(node corev1.Node) bool { return len(node.Status.VolumesAttached) != wanted }), err
	})
	if err != nil {
		return fmt.Errorf("waiting until each node has %d volumes attached: %w", wanted, err)
	}
	return nil
}

type attachments struct {
	attached map[string]bool
	// first and last are when something happened for the first and the last time.
	first, last time.Time
}

func (b *testbed) attachments() (*attachments, error) {
	list := &storagev1.VolumeAttachmentList{}
	if err := b.client.List(b.ctx, list); err != nil {
		return nil, fmt.Errorf("listing attachments: %w", err)
	}
	seen := &attachments{attached: map[string]bool{}}
	for i := range list.Items {
		seen.attached[list.Items[i].Name] = list.Items[i].Status.Attached
	}
	return seen, nil
}

func (a *attachments) see(event watch.Event, now time.Time) change {
	attachment, ok := event.Object.(*storagev1.VolumeAttachment)
	if !ok {
		return nothing
	}
	a.last = now
	if a.first.IsZero() {
		a.first = now
	}
	if event.Type == watch.Deleted {
		delete(a.attached, attachment.Name)
	} else {
		a.attached[attachment.Name] = attachment.Status.Attached
	}
	return progress
}

func (a *attachments) off(wanted map[string]bool) int {
	right := 0
	for name, attached := range a.attached {
		if attached && wanted[name] {
			right++
		}
	}
	return len(wanted) - right + len(a.attached) - right
}
