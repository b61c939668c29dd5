// Package attach decides which volumes are attached to which nodes, and when a volume may be
// detached by force.
//
// The reconcilers of nodes and of attachments read the cluster and the backends, call it, and
// carry out its steps. It is pure: it has no client and no clock of its own, and never
// attaches anything.
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

// machineInterval is the interval of calls to a cloud about a machine: clouds send no events.
const machineInterval = 30 * time.Second

// NeverForce is the value of AttachmentPolicy.forceDetachAfter that disables force by time.
const NeverForce = "Never"

// NodeCondition is the state of the machine that a volume is attached to, and of its Node
// object.
type NodeCondition struct {
	// Exists is true if there is a Node object of that machine.
	Exists bool
	// Ready is true if the Node object is Ready. Unknown is not Ready.
	Ready bool
	// Since is when the node became Ready, or stopped being so. Zero: unknown.
	Since time.Time
	// MissingSince is when the Node object was first seen to be missing. Zero: unknown. It
	// only matters if the policy sets MissingCounts.
	MissingSince time.Time
	// OutOfService is true if the node has the out-of-service taint, which promises that the
	// machine is off. A person or a fencing program sets it.
	OutOfService bool
	// Machine is the answer of the cloud.
	Machine backend.Machine
}

// Policy is when volumes may be detached by force from a node that still uses them.
type Policy struct {
	// Never is true if time alone does not allow it.
	Never bool
	// After is how long a node must have been not Ready.
	After time.Duration
	// MissingCounts is true if a missing Node object is like one that is not Ready. It is for
	// all drivers but Stowage's own: their cloud cannot be queried. For our own the cloud decides.
	MissingCounts bool
}

// Force is the decision whether a volume may be detached from a node by force.
type Force struct {
	Allowed bool
	// Reason is why, or why not and what would change it, for people.
	Reason string
	// After is when to check again if nothing happens. Zero: never.
	After time.Duration
}

// PolicyOf returns the policy of a StorageBackend. The API server validates it; an invalid
// duration would mean Never.
func PolicyOf(policy stowagev1alpha1.AttachmentPolicy) Policy {
	after, err := time.ParseDuration(policy.ForceDetachAfter)
	return Policy{Never: err != nil, After: after}
}

// ConditionOf returns the state of a Node object; nil is a missing one. The caller adds the
// Machine if it can query a cloud.
func ConditionOf(node *corev1.Node) NodeCondition {
	if node == nil {
		return NodeCondition{}
	}
	condition := NodeCondition{
		Exists: true,
		// A node that never reported Ready has not been Ready since its creation.
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

// MayForce decides whether a volume that a node may still use can be detached from it. A write
// to a disk that another node has mounted destroys the data, so:
//
//	a Ready node is never forced, whatever the taint or the cloud says;
//	one that is not Ready is, once its machine is known, or promised, to be off;
//	else only time allows it, and only while there is a Node object that shows it.
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
			After:  machineInterval,
		}
	case policy.Never:
		return Force{
			Reason: "the node is not Ready, and forceDetachAfter is Never: " + whenOff,
			After:  machineInterval,
		}
	default:
		return forceAfter(node, policy, now)
	}
}

// whenOff is how a person allows what time does not.
const whenOff = "once its machine is off for certain, give the node the taint " + corev1.TaintNodeOutOfService

func forceAfter(node NodeCondition, policy Policy, now time.Time) Force {
	since, state := node.Since, "not Ready"
	if !node.Exists {
		since, state = node.MissingSince, "gone"
	}
	if since.IsZero() {
		return Force{Reason: fmt.Sprintf("the node is %s, and since when is unknown: %s", state, whenOff), After: machineInterval}
	}
	left := since.Add(policy.After).Sub(now)
	if left > 0 {
		return Force{
			Reason: fmt.Sprintf("the node is %s since %s: it is forced after %s; %s", state, since.UTC().Format(time.RFC3339), policy.After, whenOff),
			After:  min(left, machineInterval),
		}
	}
	return Force{Allowed: true, Reason: fmt.Sprintf("the node is %s since %s, which is longer than %s", state, since.UTC().Format(time.RFC3339), policy.After)}
}

// IsReleased reports whether a node has certainly released a volume after the deletion of its
// attachment. If the node's status may still change that, after is when it will be certain.
//
// A Node object that is younger than the attachment begins with an empty volumesInUse,
// whatever is mounted. It counts once the node had time to fill it in.
func IsReleased(node *corev1.Node, name corev1.UniqueVolumeName, attachment *storagev1.VolumeAttachment, now time.Time) (released bool, after time.Duration) {
	registered := node.CreationTimestamp.Time
	switch condition := ConditionOf(node); {
	case !IsUnused(node, name):
		return false, 0
	case !attachment.CreationTimestamp.Before(&node.CreationTimestamp):
		return true, 0
	case condition.Ready:
		left := registered.Add(settleTime).Sub(now)
		return left <= 0, max(0, left)
	default:
		return !condition.Since.Before(registered.Add(settleTime)), 0
	}
}
