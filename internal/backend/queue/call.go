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
	// callerWaits is how long a caller waits for an answer before it returns: most backends answer
	// sooner, and waking a reconciler costs more.
	callerWaits = 200 * time.Millisecond
	// timeout is how long a call may take. Its outcome isn't known then.
	timeout = 2 * time.Minute
	// answerKept is how long an answer is kept for a caller that doesn't come, and slotKept how long
	// a slot is.
	answerKept = time.Minute
	slotKept   = 15 * time.Second
	// observationKept is answerKept for the state of a machine and its attachments: it may change
	// soon, and it decides on forced detaches.
	observationKept = 10 * time.Second
)

// operation is a method of a backend, as metrics and messages name it.
type operation string

const (
	provision operation = "provision"
	remove    operation = "delete"
	// undo removes what an unfinished provision made.
	undo   operation = "undo"
	expand operation = "expand"
	modify operation = "modify"
	// retain records that a volume is kept.
	retain operation = "retain"
	// The calls about a snapshot.
	createSnapshot operation = "create-snapshot"
	deleteSnapshot operation = "delete-snapshot"
	findSnapshot   operation = "find-snapshot"
	retainSnapshot operation = "retain-snapshot"
	// The calls about a group snapshot.
	createGroupSnapshot operation = "create-group-snapshot"
	deleteGroupSnapshot operation = "delete-group-snapshot"
	findGroupSnapshot   operation = "find-group-snapshot"
	// validate is about what a volume object promises.
	validate operation = "validate"
	// recycle empties the directory of a volume.
	recycle operation = "recycle"
	attach  operation = "attach"
	detach  operation = "detach"
	// inspect reports whether a node has a volume.
	inspect operation = "is-attached"
	// observe is about a node, and about no volume.
	observe operation = "observe-node"
	// list is about all attachments of a backend.
	list operation = "attachments"
	// capacity is about the room for volumes of a class, and topologies about where room is.
	capacity   operation = "capacity"
	topologies operation = "capacity-topologies"
)

// key identifies a call among those that can be open at the same time. The calls for one volume
// still run one after the other.
type key struct{ id, node string }

// keyOfSnapshot is the key of calls about a snapshot, by its id or its handle. A driver may give a
// snapshot and a volume the same handle: a call about the one must not replace the answer of the other.
func keyOfSnapshot(name string) key { return key{id: "snapshot " + name} }

// keyOfGroup is the key of calls about a group snapshot, by its id or its handle.
func keyOfGroup(name string) key { return key{id: "group snapshot " + name} }

// caller identifies what waits for an answer. For an operation on a volume that is its one
// reconciler. For an observation, which many may request, it is the backend that each opened.
type caller any

// subject is what the answer to a call depends on. Calls for the same key with different subjects
// are different calls.
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

// call is one call to a backend, from its first request to its answer.
type call struct {
	subject
	key
	// namespace is what gets slots in turn: a claim's namespace, or a node.
	namespace string
	// metric is the backend's name in metrics; "" where the call is not measured.
	metric string
	run    func(context.Context) (any, error)
	// entered is when the call was queued.
	entered time.Time

	state state
	// wakes wake callers that returned, once there is a slot or an answer.
	wakes map[caller]func()
	// waiting are the callers that wait for the answer, and how many of each.
	waiting map[caller]int
	done    chan struct{}
	answer  any
	err     error
	// accepted: the storage has accepted the call, which doesn't need its slot any more.
	accepted bool
	// outdated: the volume changed since the call began.
	outdated bool
}

// parameters are the parts of a request that its answer depends on.
type parameters struct {
	claim    stowagev1alpha1.ClaimReference
	capacity int64
	mode     corev1.PersistentVolumeMode
	access   string
	node     string
	// topologies are those that the volume's class allows.
	topologies string
	// source is the volume of which it is a copy.
	source string
	// metadata is the claim's labels and annotations.
	metadata string
	// class is what only the storage understands of the class.
	class string
}

// isVoid reports whether the answer is an outdated progress report.
func (c *call) isVoid() bool {
	return c.state == ended && c.outdated && backend.Unfinished(c.err)
}

// answerKept is how long the answer is kept for a caller that doesn't come.
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

// callerOf is the caller of a call through a served backend.
func (c *call) callerOf(s *served) caller {
	if c.operation == observe {
		return s
	}
	return c.operation
}

// addWaiter and removeWaiter count the callers that wait for the answer.
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
		class:      fmt.Sprint(request.Parameters, request.MountOptions, request.FSType),
	}
	if request.Attributes != nil {
		p.class += fmt.Sprint(*request.Attributes)
	}
	if request.Placement != nil {
		p.topologies += fmt.Sprint(*request.Placement)
	}
	if request.Node != nil {
		p.node = request.Node.Name
	}
	if request.Source != nil {
		p.source = "copy of " + request.Source.ID + request.Source.Snapshot
	}
	return p
}
