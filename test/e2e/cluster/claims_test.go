package cluster_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/fixture"
)

// claim is one named data, of a class, for so much.
func (n *namespace) claim(class, size string, options ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	made := fixture.Claim(append([]func(*corev1.PersistentVolumeClaim){
		fixture.ClaimNamed(data), fixture.InClass(class), fixture.Asking(size),
	}, options...)...)
	made.Namespace = n.name
	return made
}

// volume is the volume that a claim is bound to.
func (n *namespace) volume(claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	volume := &corev1.PersistentVolume{}
	if err := n.get(claim); err != nil {
		return nil, err
	}
	if claim.Status.Phase != corev1.ClaimBound {
		return nil, fmt.Errorf("claim %s is %s", claim.Name, claim.Status.Phase)
	}
	return volume, n.cluster.Client.Get(n.ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume)
}

// grow has a claim ask for more.
func (n *namespace) grow(claim *corev1.PersistentVolumeClaim, size string) error {
	return n.change(claim, func() { claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size) })
}

// hasGrown reports whether claim and volume have a size, with nothing left to be done.
func (n *namespace) hasGrown(claim *corev1.PersistentVolumeClaim, size string) error {
	volume, err := n.volume(claim)
	if err != nil {
		return err
	}
	want, has, given := resource.MustParse(size), claim.Status.Capacity.Storage(), volume.Spec.Capacity.Storage()
	if has.Cmp(want) != 0 || given.Cmp(want) != 0 || len(claim.Status.AllocatedResourceStatuses) > 0 {
		return fmt.Errorf("the claim has %s, the volume %s, not %s: %v %+v",
			has, given, size, claim.Status.AllocatedResourceStatuses, claim.Status.Conditions)
	}
	return nil
}
