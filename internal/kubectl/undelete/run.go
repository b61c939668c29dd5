package undelete

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldOwner is the manager of the fields that undelete writes.
const fieldOwner = "kubectl-stowage"

// pollInterval is the time between two reads while binding is awaited.
const pollInterval = 500 * time.Millisecond

// Result is what undelete did.
type Result struct {
	Volume string `json:"volume"`
	Claim  string `json:"claim"`
	// Policy is the reclaim policy of the volume at the end.
	Policy string `json:"reclaimPolicy"`
	DryRun bool   `json:"dryRun,omitempty"`
}

// undeletion is one run.
type undeletion struct {
	client  client.Client
	to      *client.ObjectKey
	timeout time.Duration
	dryRun  bool
}

// errChanged says that another component wrote the object at the same time.
var errChanged = errors.New("the object changed at the same time: run the command again")

// attempts is how often a run begins again on its own. The manager writes a volume's status when
// its undelete window begins.
const attempts = 5

// run gives the data of a volume back. Each step first asks whether it is done.
func (u *undeletion) run(ctx context.Context, name string) (result *Result, err error) {
	for range attempts {
		if result, err = u.runOnce(ctx, name); !errors.Is(err, errChanged) {
			break
		}
	}
	return result, err
}

func (u *undeletion) runOnce(ctx context.Context, name string) (*Result, error) {
	pv := &corev1.PersistentVolume{}
	if err := u.client.Get(ctx, client.ObjectKey{Name: name}, pv); err != nil {
		return nil, explained(err, "reading PersistentVolume %s (kubectl stowage list --retained has the names)", name)
	}
	if err := refuse(pv); err != nil {
		return nil, err
	}
	key, err := target(pv, u.to)
	if err != nil {
		return nil, err
	}
	if err := u.free(ctx, pv, key); err != nil {
		return nil, err
	}
	claim, err := u.existing(ctx, pv, key)
	if err != nil {
		return nil, err
	}
	if claim == nil {
		// Admission, quotas and the namespace are asked before the volume is touched.
		if err := u.client.Create(ctx, claimFor(pv, key), client.FieldOwner(fieldOwner), client.DryRunAll); err != nil {
			return nil, explained(err, "creating claim %s in a dry run; nothing was changed", key)
		}
	}
	result := &Result{Volume: pv.Name, Claim: key.String(), DryRun: u.dryRun, Policy: string(pv.Spec.PersistentVolumeReclaimPolicy)}
	if begun(pv) {
		result.Policy = string(formerPolicy(pv))
	}
	return result, u.bringBack(ctx, pv, key, claim)
}

// bringBack reserves the volume, creates the claim, and restores the policy once both are bound.
func (u *undeletion) bringBack(ctx context.Context, pv *corev1.PersistentVolume, key client.ObjectKey, claim *corev1.PersistentVolumeClaim) error {
	bound := claim != nil && isBound(pv, claim)
	if !bound && !isReserved(pv, key, claim) {
		if err := u.patch(ctx, pv, reserve(pv, key)); err != nil {
			return explained(err, "reserving PersistentVolume %s for claim %s", pv.Name, key)
		}
	}
	if u.dryRun {
		return nil
	}
	if claim == nil {
		if err := u.client.Create(ctx, claimFor(pv, key), client.FieldOwner(fieldOwner)); err != nil {
			return explained(err, "creating claim %s; the volume is reserved for it and its data is kept: run the command again", key)
		}
	}
	if err := u.awaitBound(ctx, pv, key); err != nil {
		return err
	}
	if err := u.patch(ctx, pv, restore(pv)); err != nil {
		return explained(err, "restoring the policy %s of PersistentVolume %s; the data was given back: run the command again", formerPolicy(pv), pv.Name)
	}
	return nil
}

// free returns an error while the claim that the volume is tied to exists, unless that is the
// target. A volume is never taken from a claim.
func (u *undeletion) free(ctx context.Context, pv *corev1.PersistentVolume, target client.ObjectKey) error {
	ref, claim := pv.Spec.ClaimRef, &corev1.PersistentVolumeClaim{}
	if ref == nil {
		return nil
	}
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	err := u.client.Get(ctx, key, claim)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return explained(err, "reading claim %s", key)
	case ref.UID != "" && ref.UID != claim.UID || begun(pv) && key == target:
		return nil
	default:
		return errHeld(pv, key.String())
	}
}

// existing is a claim that already asks for the volume, or nil if no claim has the name.
func (u *undeletion) existing(ctx context.Context, pv *corev1.PersistentVolume, key client.ObjectKey) (*corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{}
	err := u.client.Get(ctx, key, claim)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, explained(err, "reading claim %s", key)
	case !claim.DeletionTimestamp.IsZero():
		return nil, fmt.Errorf("claim %s is still being deleted: wait until it is gone, or name another with --to", key)
	case claim.Spec.VolumeName != pv.Name:
		return nil, fmt.Errorf("claim %s exists and asks for another volume: delete it, or name another with --to", key)
	default:
		return claim, nil
	}
}

// awaitBound waits until claim and volume are bound, and leaves the newest state in pv.
func (u *undeletion) awaitBound(ctx context.Context, pv *corev1.PersistentVolume, key client.ObjectKey) error {
	claim := &corev1.PersistentVolumeClaim{}
	err := wait.PollUntilContextTimeout(ctx, pollInterval, u.timeout, true, func(ctx context.Context) (bool, error) {
		if err := u.client.Get(ctx, key, claim); err != nil {
			return false, err
		}
		if err := u.client.Get(ctx, client.ObjectKeyFromObject(pv), pv); err != nil {
			return false, err
		}
		return isBound(pv, claim), nil
	})
	if err != nil {
		return fmt.Errorf("claim %s isn't bound yet (%w); the volume is reserved for it, and its policy stays Retain, which keeps the data: "+
			"see kubectl stowage explain pvc %s -n %s, then run the command again", key, err, key.Name, key.Namespace)
	}
	return nil
}

// patch writes a fenced merge patch, and leaves the answer in pv.
func (u *undeletion) patch(ctx context.Context, pv *corev1.PersistentVolume, change map[string]any) error {
	body, err := json.Marshal(change)
	if err != nil {
		return err
	}
	options := []client.PatchOption{client.FieldOwner(fieldOwner)}
	if u.dryRun {
		options = append(options, client.DryRunAll)
	}
	return u.client.Patch(ctx, pv, client.RawPatch(types.MergePatchType, body), options...)
}

// explained wraps an error with what was being done and, where the kind says it, what to do.
func explained(err error, format string, arguments ...any) error {
	switch {
	case apierrors.IsConflict(err):
		err = errChanged
	case apierrors.IsForbidden(err):
		err = fmt.Errorf("%w: ask an administrator to run the command", err)
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, arguments...), err)
}
