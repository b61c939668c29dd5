package queue

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

const (
	// callerStays is how long a caller waits for an answer before it goes on: most backends
	// answer sooner, and waking a reconciler costs more.
	callerWaits = 200 * time.Millisecond
	// timeout is how long a call may take. Its outcome isn't known then.
	timeout = 2 * time.Minute
	// answerKept is how long an answer waits for a caller that doesn't come, and slotKept
	// how long a slot does.
	answerKept = time.Minute
	slotKept   = 15 * time.Second
	// observationKept is answerKept for what a machine is, and has: that may change soon,
	// and volumes are taken by force because of it.
	observationKept = 10 * time.Second
)

// operation is what is asked of a backend, as metrics and messages name it.
type operation string

const (
	provision operation = "provision"
	remove    operation = "delete"
	expand    operation = "expand"
	// retain notes that a volume is kept.
	retain operation = "retain"
	// recycle empties the directory of a volume.
	recycle operation = "recycle"
	attach  operation = "attach"
	detach  operation = "detach"
	// inspect finds out whether a node has a volume.
	inspect operation = "is-attached"
	// observe is of a node, and of no volume.
	observe operation = "observe-node"
	// list is of all attachments of a backend.
	list operation = "attachments"
)

// key tells calls apart that can be open at the same time. The calls for one volume run one
// after the other all the same.
type key struct{ id, node string }

// caller stands for what waits for an answer: for one operation of a volume that is its one
// reconciler, and for an observation, which many may ask for, the backend that each opened.
type caller any

// subject is what the answer to a call depends on. Calls for the same key that have
// different subjects are different calls.
type subject struct {
	operation operation
	// version of the object that the call was decided on, as of a StorageBackend's spec.
	version    string
	parameters parameters
}

// state is how far a call is.
type state int

const (
	queued state = iota
	// granted calls have a slot; a caller is to come for it.
	granted
	running
	ended
)

// call is one call to a backend, from the first time that it is asked for to its answer.
type call struct {
	subject
	key
	// namespace is what calls take slots by in turn: a claim's, or a node.
	namespace string
	// metric is the name that the call is measured under; "" where it is not.
	metric string
	run    func(context.Context) (any, error)

	state state
	// wakes tell callers that went away that there is a slot or an answer.
	wakes map[caller]func()
	// waiting are the callers that stay for the answer, and how many of each.
	waiting map[caller]int
	done    chan struct{}
	answer  any
	err     error
	// released: the storage has taken the call, which needs its slot no more.
	accepted bool
	// outdated: something happened to the volume since the call began.
	outdated bool
}

// parameters are all of a request that its answer depends on.
type parameters struct {
	claim    stowagev1alpha1.ClaimReference
	capacity int64
	mode     corev1.PersistentVolumeMode
	access   string
	node     string
	// topologies are those that the volume's class allows.
	topologies string
	// source is the volume that it is to be a copy of.
	source string
	// metadata is what the claim's owner says of it.
	metadata string
}

// isVoid reports whether the answer says how far things are, and misses the latest.
func (c *call) isVoid() bool {
	return c.state == ended && c.outdated && backend.Unfinished(c.err)
}

// keeps is how long the answer waits for a caller that doesn't come.
func (c *call) answerKept() time.Duration {
	if c.operation == observe || c.operation == inspect {
		return observationKept
	}
	return answerKept
}

func (c *call) wakeAll() {
	for _, wake := range c.wakes {
		wake()
	}
}

// callerOf is what asks for a call through a backend that is served.
func (c *call) callerOf(s *served) caller {
	if c.operation == observe {
		return s
	}
	return c.operation
}

// stay and leave count the callers that wait for the answer.
func (c *call) addWaiter(by caller) { c.waiting[by]++ }

func (c *call) removeWaiter(by caller) {
	c.waiting[by]--
	if c.waiting[by] == 0 {
		delete(c.waiting, by)
	}
}

func parametersOf(request backend.Request) parameters {
	p := parameters{
		claim:      request.Claim,
		capacity:   request.Capacity.Value(),
		mode:       request.VolumeMode,
		access:     fmt.Sprint(request.AccessModes),
		topologies: fmt.Sprint(request.Topologies),
		metadata:   fmt.Sprint(request.Labels, request.Annotations),
	}
	if request.Node != nil {
		p.node = request.Node.Name
	}
	if request.Source != nil {
		p.source = "copy of " + request.Source.ID
	}
	return p
}
