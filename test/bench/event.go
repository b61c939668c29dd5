package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/fixture"
)

const (
	// eventVolumes are those of the node on which things happen, in every cluster.
	eventVolumes = 20
	// eventCycles are how often a pod comes and goes, and eventBeats how often a node
	// reports that it lives.
	eventCycles, eventBeats = 100, 1000
	calm                    = 50 * time.Millisecond // of CPU time, in a second
	calmTimeout             = 5 * time.Minute

	eventColumns = "%-14s %7v %8v %9s %9s\n"
)

type clusterSize struct{ Nodes, Volumes int }

// eventSizes grow in volumes, and then in nodes. The flag event-volumes adds one more.
var eventSizes = []clusterSize{{100, 1000}, {100, 10000}, {3000, 10000}}

func (o options) eventSizes() []clusterSize {
	largest := eventSizes[len(eventSizes)-1]
	if o.eventVolumes <= largest.Volumes {
		return eventSizes
	}
	return append(slices.Clone(eventSizes), clusterSize{largest.Nodes, o.eventVolumes})
}

// eventCost is what the manager needs for what happens on one node.
type eventCost struct {
	clusterSize
	// Cycle is the CPU time for a pod with a volume that comes, gets its volume
	// attached, and goes. Beat is that for a node's status that says it lives.
	Cycle, Beat milliseconds
}

// measureNodeEvents measures what an event on one node costs, in clusters of several
// sizes. They get an API server of their own: what is in them needs no removing.
func (b *testbed) measureNodeEvents() (err error) {
	own, err := newTestbed(b.ctx, b.options, b.report)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.stop()) }()
	if err := own.client.Create(own.ctx, diskBackend()); err != nil {
		return fmt.Errorf("creating a StorageBackend: %w", err)
	}
	fmt.Fprintf(b.report.out, "\n"+eventColumns, "NODE EVENT", "NODES", "VOLUMES", "CYCLE ms", "BEAT ms")
	there := clusterSize{}
	for _, size := range b.options.eventSizes() {
		if err := own.growTo(there, size); err != nil {
			return fmt.Errorf("making a cluster of %d nodes with %d volumes: %w", size.Nodes, size.Volumes, err)
		}
		there = size
		cost, err := own.eventCost(size)
		if err != nil {
			return err
		}
		b.report.Events = append(b.report.Events, cost)
		fmt.Fprintf(b.report.out, eventColumns, "", cost.Nodes, cost.Volumes, decimals(2, cost.Cycle), decimals(3, cost.Beat))
	}
	return nil
}

// growTo adds nodes, and volumes that are attached and used by pods. The first node
// has as many in every cluster; all others lie on the other nodes.
func (b *testbed) growTo(there, size clusterSize) error {
	nodes := span{from: there.Nodes, n: size.Nodes - there.Nodes}
	volumes := span{from: there.Volumes, n: size.Volumes - there.Volumes}
	if there.Volumes == 0 {
		volumes.n++ // the one that comes and goes
	} else {
		volumes.from++
	}
	if err := b.createFleet(nodes, volumes); err != nil {
		return err
	}
	users := map[int][]int{}
	for i := volumes.from; i < volumes.from+volumes.n; i++ {
		if i != spareVolume {
			users[placeOf(i, size)] = append(users[placeOf(i, size)], i)
		}
	}
	return inParallel(b.ctx, size.Nodes, func(node int) error { return b.use(node, users[node]) })
}

// spareVolume is that which comes and goes.
const spareVolume = 0

// placeOf is the node that a volume is used on: the first few on the first node.
func placeOf(volume int, size clusterSize) int {
	if volume <= eventVolumes {
		return 0
	}
	return 1 + volume%(size.Nodes-1)
}

func (b *testbed) use(node int, volumes []int) error {
	if len(volumes) == 0 {
		return nil
	}
	attacher := bareFleet{client: b.client}
	claims := make([]string, 0, len(volumes))
	known := &corev1.Node{}
	if err := b.client.Get(b.ctx, client.ObjectKey{Name: nodeName(node)}, known); err != nil {
		return err
	}
	attached := known.Status.VolumesAttached
	for _, volume := range volumes {
		if err := attacher.attachTo(b.ctx, volume, nodeName(node)); err != nil {
			return fmt.Errorf("attaching a volume: %w", err)
		}
		claims = append(claims, claimName(volume))
		attached = append(attached, corev1.AttachedVolume{Name: uniqueName(volume)})
	}
	if err := attacher.setAttached(b.ctx, nodeName(node), attached); err != nil {
		return fmt.Errorf("setting volumesAttached of a node: %w", err)
	}
	pod := fixture.Pod(fmt.Sprintf("pod-%05d-%05d", node, volumes[0]), nodeName(node), claims...)
	return b.client.Create(b.ctx, pod)
}

// eventCost starts the manager in a cluster, waits until it is done with what is
// there, and lets things happen on the first node.
func (b *testbed) eventCost(size clusterSize) (cost eventCost, err error) {
	running, err := b.startAttacher()
	if err != nil {
		return cost, err
	}
	defer running.stop()
	cost.clusterSize = size
	if cost.Cycle, err = b.cpuOf(running, eventCycles, b.podComesAndGoes); err != nil {
		return cost, err
	}
	cost.Beat, err = b.cpuOf(running, eventBeats, b.nodeBeats)
	return cost, err
}

// cpuOf does something a few times, and returns what CPU time the program needed for
// each, once it is calm again.
func (b *testbed) cpuOf(running processes, times int, do func(processes) error) (milliseconds, error) {
	before, err := b.awaitCalm(running)
	if err != nil {
		return 0, err
	}
	for range times {
		if err := errors.Join(b.ctx.Err(), do(running)); err != nil {
			return 0, err
		}
	}
	after, err := b.awaitCalm(running)
	return inMilliseconds(after-before) / milliseconds(times), err
}

// awaitCalm waits until a program does next to nothing, and returns what CPU time it
// used so far.
func (b *testbed) awaitCalm(running processes) (used time.Duration, err error) {
	before := time.Duration(0)
	err = wait.PollUntilContextTimeout(b.ctx, time.Second, calmTimeout, true, func(context.Context) (bool, error) {
		now, err := running.usage()
		used = now.cpu
		isCalm := before > 0 && used-before < calm
		before = used
		return isCalm, errors.Join(err, running.alive())
	})
	if err != nil {
		return 0, fmt.Errorf("waiting until the manager has nothing to do: %w", err)
	}
	return used, nil
}

func (b *testbed) podComesAndGoes(running processes) error {
	pod := fixture.Pod("passer-by", nodeName(0), claimName(spareVolume))
	if err := b.client.Create(b.ctx, pod); err != nil {
		return fmt.Errorf("creating a pod: %w", err)
	}
	name := client.ObjectKey{Name: attachmentName(spareVolume, nodeName(0))}
	err := b.awaitAttachment(running, name, func(found bool, attached bool) bool { return found && attached })
	if err != nil {
		return fmt.Errorf("waiting for a volume to be attached: %w", err)
	}
	if err := b.client.Delete(b.ctx, pod, client.GracePeriodSeconds(0)); err != nil {
		return err
	}
	return b.awaitAttachment(running, name, func(found bool, _ bool) bool { return !found })
}

func (b *testbed) awaitAttachment(running processes, name client.ObjectKey, is func(found, attached bool) bool) error {
	return wait.PollUntilContextTimeout(b.ctx, poll, canaryTimeout, true, func(ctx context.Context) (bool, error) {
		attachment := &storagev1.VolumeAttachment{}
		err := b.client.Get(ctx, name, attachment)
		return is(err == nil, attachment.Status.Attached), errors.Join(client.IgnoreNotFound(err), running.alive())
	})
}

func (b *testbed) nodeBeats(processes) error {
	return b.client.Status().Patch(b.ctx, fixture.Node(nodeName(0)), strategic{"status": object{
		"conditions": []object{{"type": corev1.NodeReady, "status": corev1.ConditionTrue, "lastHeartbeatTime": metav1.NowMicro()}},
	}})
}
