package provisioning

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

// ownCalls are the calls of this process that a backend goes on with, by claim. Such a call is repeated without a live read of the
// claim and of its PersistentVolume, if the claim still shows the operation, and this process has led since the call.
//
// Then nothing changed: only a leader writes operations and attempts, and creates a volume for them. It has noted the call since it
// last did one of these. The cache shows a process its own writes. A live read could show one thing more: the claim is being
// deleted, or a person took away or changed what only Stowage writes. Either may follow the read at once, and ends the same:
//
//   - A claim that is being deleted keeps its finalizer until its storage has a PersistentVolume, or is removed.
//   - A PersistentVolume of that name that a person created makes the creation fail. It is read then.
type ownCalls struct {
	term  func() (leadership.Term, bool)
	noted *lru.Cache
}

// maxOwnCalls bounds the calls that are noted.
const maxOwnCalls = 10_000

// instant is when something was known: in a term of this process, or while another manager may have led.
type instant struct {
	term  leadership.Term
	leads bool
}

// ownCall is a call, and since when nothing of what it depends on changed.
type ownCall struct {
	pending pending
	since   instant
}

func newOwnCalls(term func() (leadership.Term, bool)) ownCalls {
	return ownCalls{term, lru.New(maxOwnCalls)}
}

func (c ownCalls) now() (now instant) {
	now.term, now.leads = c.term()
	return now
}

// note notes a call that goes on. Since then, the claim and its PersistentVolume were read live, or the claim was written.
func (c ownCalls) note(claim *corev1.PersistentVolumeClaim, since instant, outcome error) {
	if since.leads && backend.Unfinished(outcome) {
		c.noted.Add(claim.UID, ownCall{pendingIn(claim), since})
	}
}

// take forgets the call for a claim, and reports whether it proves what a live read would.
func (c ownCalls) take(claim *corev1.PersistentVolumeClaim) bool {
	noted, _ := c.noted.Get(claim.UID)
	c.noted.Remove(claim.UID)
	own, isNoted := noted.(ownCall)
	return isNoted && own == ownCall{pendingIn(claim), c.now()}
}

// pending is what a claim says of its pending operation.
type pending struct {
	claim           types.UID
	isDeleted       bool
	attempt         int
	intent, records string
}

func pendingIn(claim *corev1.PersistentVolumeClaim) pending {
	return pending{
		claim: claim.UID, isDeleted: !claim.DeletionTimestamp.IsZero(), attempt: provisioned.AttemptOf(claim),
		intent: claim.Annotations[stowagev1alpha1.ProvisioningAnnotation], records: fmt.Sprintf("%q", provisioned.Records(claim)),
	}
}
