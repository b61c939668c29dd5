package nodemanager

import (
	"fmt"
	"testing"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

// states are how the node looks with its pod, with what is shown in each of two versions,
// and without it.
type states struct {
	shown [2][]string
	empty []string
}

// learn finds out how the node looks when no node manager is killed.
func (n *killedNode) learn(t *testing.T) states {
	t.Helper()
	var learnt states
	for version := range learnt.shown {
		n.Version, n.Leaves = version, false
		n.mustSettle(t, "without a kill")
		learnt.shown[version] = n.look(t)
	}
	n.Leaves = true
	n.mustSettle(t, "without a kill")
	learnt.empty = n.look(t)
	return learnt
}

// mustSettle has a new node manager finish what the last one began.
func (n *killedNode) mustSettle(t *testing.T, when string) {
	t.Helper()
	if err := n.settle(t.Context()); err != nil {
		t.Fatalf("%s: %v", when, err)
	}
}

// work is one kind of work, at which node managers are killed before each step in turn.
type work struct {
	name string
	// over: there is no further step.
	over bool
}

// killedAt has a node manager killed before a step of its work, unless it has no further
// one, and returns when that was.
func (n *killedNode) killedAt(t *testing.T, work *work, step int) (when string) {
	t.Helper()
	if !work.over {
		work.over = !n.settleKilled(t, step)
	}
	return fmt.Sprintf("killed before step %d of %s", step, work.name)
}

func eachKilledVolume(t *testing.T, do func(*testing.T, *killedNode)) {
	mounttest.NeedsRoot(t)
	for name := range killedVolumes {
		t.Run(name, func(t *testing.T) { do(t, newKilledNode(t, name)) })
	}
}

//proves:csi/foreign-crash csi/foreign-Block
func TestANodeManagerThatIsKilledBeforeAnyStepFinishesWhatItBegan(t *testing.T) {
	eachKilledVolume(t, func(t *testing.T, n *killedNode) {
		should := n.learn(t)
		publish, refresh, teardown := &work{name: "publish"}, &work{name: "refresh"}, &work{name: "teardown"}
		refresh.over = !follows(killedVolumes[n.Volume])
		for step, stride := kills(t); !publish.over || !refresh.over || !teardown.over; step += stride {
			n.Version, n.Leaves = step%2, false
			n.clearDisk(t)
			when := n.killedAt(t, publish, step)
			n.mustSettle(t, when)
			n.mustBe(t, should.shown[n.Version], when)

			if !refresh.over {
				n.Version = 1 - n.Version
				when := n.killedAt(t, refresh, step)
				n.mustSettle(t, when)
				n.mustBe(t, should.shown[n.Version], when)
			}

			n.Leaves = true
			when = n.killedAt(t, teardown, step)
			n.mustSettle(t, when)
			n.mustBe(t, should.empty, when)
		}
	})
}

func TestOfAPodThatGoesAfterAKillNothingIsLeft(t *testing.T) {
	eachKilledVolume(t, func(t *testing.T, n *killedNode) {
		should := n.learn(t)
		publish := &work{name: "publish"}
		for step, stride := kills(t); !publish.over; step += stride {
			n.Leaves = false
			n.clearDisk(t)
			when := n.killedAt(t, publish, step)
			n.Leaves = true
			n.mustSettle(t, when)
			n.mustBe(t, should.empty, when)
		}
	})
}
