// Package reconciler has what all reconcilers are made of: one Dependencies value, from which
// each constructor takes what it needs, and the Scope. Setup fills it from the manager, and
// specs from a world of their own.
package reconciler

import (
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/leadership"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/waiting"
)

// Dependencies are what reconcilers are made of. Each takes what it needs.
type Dependencies struct {
	// Client reads the cache, and writes.
	Client client.Client
	// Live reads the API server itself.
	Live client.Reader
	// Reads are the live reads that several reconciles share.
	Reads liveread.Reads
	// Prepared are the writes of a moment ago by which this process prepared attachments, and Deleted those by which it deleted some.
	Prepared, Deleted *attachintent.Writes
	// Leads reports whether this process leads, and no other one will for some seconds. False: maybe.
	Leads func() bool
	// Term returns the term in which this process leads, and what Leads does.
	Term func() (leadership.Term, bool)
	// Storage opens backends.
	Storage *opener.Opener
	// Events sends events.
	Events events.EventRecorder
	// Waiting has the claims that wait, for metrics. Nil: they are not counted.
	Waiting *waiting.Claims
	// Patience is how long a backend works before its claim's condition says so.
	Patience time.Duration
	// Clock returns the time.
	Clock clock.PassiveClock
	// Scope decides which claims and volumes are reconciled.
	Scope Scope
	// CSISnapshotter are drivers of Stowage's own whose VolumeSnapshotContents csi-snapshotter serves.
	CSISnapshotter []string
	// Namespace is the manager's own, where it publishes the free space of nodes. Empty: it
	// publishes nothing.
	Namespace string
	// ForceDetachAfter is how long a node must have been not Ready, or gone, until volumes of
	// foreign drivers are detached from it by force.
	ForceDetachAfter time.Duration
	// AttachmentCheckInterval is how often the attachments in backends are compared with the
	// recorded ones. Zero: every minute.
	AttachmentCheckInterval time.Duration
}

// Scope decides which claims and volumes Stowage reconciles.
type Scope string

// ClassesScope covers only claims and volumes of Stowage's own drivers and leaves binding,
// phases and protection to kube-controller-manager.
const ClassesScope Scope = "classes"

// ClusterScope covers every claim and volume of the cluster, instead of
// kube-controller-manager's volume controllers.
const ClusterScope Scope = "cluster"
