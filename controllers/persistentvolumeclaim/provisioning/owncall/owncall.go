// Package owncall knows which calls to backends this process began that go on. Such a call is repeated without a live read of the
// claim and of its PersistentVolume, if the claim still shows the operation, and this process has led since the call.
//
// Then nothing changed: only a leader writes operations and attempts, and creates a volume for them. It has noted the call since it
// last did one of these. The cache shows a process its own writes. A live read could show one thing more: the claim is being
// deleted, or a person took away or changed what only Stowage writes. Either may follow the read at once, and ends the same:
//
//   - A claim that is being deleted keeps its finalizer until its storage has a PersistentVolume, or is removed.
//   - A PersistentVolume of that name that a person created makes the creation fail. It is read then.
package owncall

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/leadership"
	"github.com/stowage-dev/stowage/internal/provisioned"
)

// maxCalls bounds the calls that are noted.
const maxCalls = 10_000

// Calls are the calls of this process that go on, by claim. They may be used concurrently for different claims.
type Calls struct {
	term  func() (leadership.Term, bool)
	noted *lru.Cache
}

// New returns none, of a process that leads in a term.
func New(term func() (leadership.Term, bool)) Calls { return Calls{term, lru.New(maxCalls)} }

// Instant is when something was known: in a term of this process, or while another manager may have led.
type Instant struct {
	term  leadership.Term
	leads bool
}

// Now is the instant at which a pass begins, before it reads or writes.
func (c Calls) Now() (now Instant) {
	now.term, now.leads = c.term()
	return now
}

// call is a call, and since when nothing of what it depends on changed.
type call struct {
	pending Pending
	since   Instant
}

// Note notes the call for a claim by its outcome, if it goes on. Since the instant, the claim and its PersistentVolume were read live,
// or the claim was written.
func (c Calls) Note(claim *corev1.PersistentVolumeClaim, since Instant, outcome error) {
	if since.leads && backend.Unfinished(outcome) {
		c.noted.Add(claim.UID, call{PendingOf(claim), since})
	}
}

// Take forgets the call for a claim, and reports whether it proves what a live read would.
func (c Calls) Take(claim *corev1.PersistentVolumeClaim) bool {
	noted, _ := c.noted.Get(claim.UID)
	c.noted.Remove(claim.UID)
	own, isNoted := noted.(call)
	return isNoted && own == call{PendingOf(claim), c.Now()}
}

// Pending is what a claim says of its pending operation, to be compared.
type Pending struct {
	claim           types.UID
	isDeleted       bool
	attempt         int
	intent, records string
}

// PendingOf returns what a claim says of its pending operation.
func PendingOf(claim *corev1.PersistentVolumeClaim) Pending {
	return Pending{
		claim: claim.UID, isDeleted: !claim.DeletionTimestamp.IsZero(), attempt: provisioned.AttemptOf(claim),
		intent: claim.Annotations[stowagev1alpha1.ProvisioningAnnotation], records: fmt.Sprintf("%q", provisioned.Records(claim)),
	}
}
