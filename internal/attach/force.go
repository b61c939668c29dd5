// Package attach decides which volumes are attached to which nodes, and when one may
// be taken from a node that didn't let go of it.
//
// The reconcilers of nodes and of attachments read the cluster and the backends, call
// it, and do what it says. It is pure: it has no client and no clock of its own, and
// never attaches anything.
package attach

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// askAgain is how soon a cloud is asked again what became of a machine: it tells
// nobody of itself.
const askAgain = 30 * time.Second

// NeverForce is what AttachmentPolicy.forceDetachAfter says for no force at all.
const NeverForce = "Never"

// NodeCondition is what is known of the machine that a volume is attached to, and of
// its Node object.
type NodeCondition struct {
	// Exists is true where there is a Node object of that machine.
	Exists bool
	// Ready is true where the Node object says so. Unknown is not Ready.
	Ready bool
	// Since is when the node became Ready, or stopped being so. Zero: nobody knows.
	Since time.Time
	// MissingSince is when the Node object was first seen to be missing. Zero: nobody
	// knows. It is asked only where the policy says that MissingCounts.
	MissingSince time.Time
	// OutOfService is true where a person, or a program that fences machines, gave the
	// node the taint that promises that the machine is off.
	OutOfService bool
	// Machine is what the cloud says.
	Machine backend.Machine
}

// Policy says when volumes may be taken from a node that didn't let go of them.
type Policy struct {
	// Never is true where time alone doesn't allow it.
	Never bool
	// After is how long a node must have been not Ready.
	After time.Duration
	// MissingCounts is true where a missing Node object is like one that isn't Ready:
	// for drivers of others, whose cloud can't be asked. Where it can be, it decides.
	MissingCounts bool
}

// Force says whether a volume may be taken from a node.
type Force struct {
	Allowed bool
	// Reason tells a person why, or why not and what would change it.
	Reason string
	// After is when it is worth looking again where nothing happens. Zero: never.
	After time.Duration
}

// PolicyOf is what a StorageBackend says. What it says is validated; were it not, no
// time would be long enough.
func PolicyOf(policy stowagev1alpha1.AttachmentPolicy) Policy {
	after, err := time.ParseDuration(policy.ForceDetachAfter)
	return Policy{Never: err != nil, After: after}
}

// ConditionOf is what a Node object tells; nil is one that is missing. Whoever can ask
// a cloud adds the Machine.
func ConditionOf(node *corev1.Node) NodeCondition {
	if node == nil {
		return NodeCondition{}
	}
	condition := NodeCondition{
		Exists: true,
		// A node that never said whether it is Ready isn't, since there is one.
		Since: node.CreationTimestamp.Time,
		OutOfService: slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
			return taint.Key == corev1.TaintNodeOutOfService
		}),
	}
	for _, reported := range node.Status.Conditions {
		if reported.Type == corev1.NodeReady {
			condition.Ready = reported.Status == corev1.ConditionTrue
			condition.Since = reported.LastTransitionTime.Time
		}
	}
	return condition
}

// MayForce decides whether a volume that a node may still use can be detached from it.
// Whoever writes to a disk that another node has mounted destroys it, so:
//
//	a Ready node is never forced, whatever else is said of it;
//	one that isn't is, once its machine is known, or promised, to be off;
//	else only time allows it, and only while there is a Node object to go by.
func MayForce(node NodeCondition, policy Policy, now time.Time) Force {
	switch {
	case node.Exists && node.Ready:
		return Force{Reason: "the node is Ready and still uses the volume: it is detached once the node has unmounted it"}
	case node.Machine == backend.MachineGone:
		return Force{Allowed: true, Reason: "the node's machine is gone"}
	case node.Machine == backend.MachineStopped:
		return Force{Allowed: true, Reason: "the node's machine is stopped"}
	case node.Exists && node.OutOfService:
		return Force{Allowed: true, Reason: "the node is not Ready and has the taint " + corev1.TaintNodeOutOfService}
	case !node.Exists && !policy.MissingCounts:
		return Force{
			Reason: "there is no Node object, and nothing says that the machine is off: stop or delete the machine",
			After:  askAgain,
		}
	case policy.Never:
		return Force{
			Reason: "the node is not Ready, and forceDetachAfter is Never: " + whatHelps,
			After:  askAgain,
		}
	default:
		return forceAfter(node, policy, now)
	}
}

// whatHelps is how a person allows what time doesn't.
const whatHelps = "once its machine is off for certain, give the node the taint " + corev1.TaintNodeOutOfService

// forceAfter decides by time.
func forceAfter(node NodeCondition, policy Policy, now time.Time) Force {
	since, state := node.Since, "not Ready"
	if !node.Exists {
		since, state = node.MissingSince, "gone"
	}
	if since.IsZero() {
		return Force{Reason: fmt.Sprintf("the node is %s, and nobody knows since when: %s", state, whatHelps), After: askAgain}
	}
	left := since.Add(policy.After).Sub(now)
	if left > 0 {
		return Force{
			Reason: fmt.Sprintf("the node is %s since %s: it is forced after %s; %s", state, since.UTC().Format(time.RFC3339), policy.After, whatHelps),
			After:  min(left, askAgain),
		}
	}
	return Force{Allowed: true, Reason: fmt.Sprintf("the node is %s since %s, which is longer than %s", state, since.UTC().Format(time.RFC3339), policy.After)}
}

// HasLetGo tells whether a node has let go of a volume whose attachment was deleted, for
// certain; where it may yet tell that it hasn't, it says when it will have told.
//
// A Node object that is younger than the attachment begins with an empty volumesInUse,
// whatever is mounted: it is believed once the node had time to fill it in.
func HasLetGo(node *corev1.Node, name corev1.UniqueVolumeName, attachment *storagev1.VolumeAttachment, now time.Time) (letGo bool, after time.Duration) {
	registered := node.CreationTimestamp.Time
	switch condition := ConditionOf(node); {
	case !Lets(node, name):
		return false, 0
	case !attachment.CreationTimestamp.Before(&node.CreationTimestamp):
		return true, 0
	case condition.Ready:
		left := registered.Add(settles).Sub(now)
		return left <= 0, max(0, left)
	default:
		return !condition.Since.Before(registered.Add(settles)), 0
	}
}
