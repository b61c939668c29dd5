package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/fixture"
)

// annManaged has a node's attachments decided by the manager.
const annManaged = "volumes.kubernetes.io/controller-managed-attach-detach"

// fleet is nodes and as many volumes for each, in groups: the volumes of a group are
// used by one pod, on one node. In a turn of the fleet, each group is as many nodes
// further.
type fleet struct {
	nodes, perNode int
}

func (f fleet) volumes() int { return f.nodes * f.perNode }

func (f fleet) group(volume int) int { return volume / f.perNode }

func (f fleet) nodeOf(group, turn int) string { return nodeName((group + turn) % f.nodes) }

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

func fleetNode(i int) *corev1.Node {
	node := fixture.Node(nodeName(i))
	node.Annotations = map[string]string{annManaged: "true"}
	return node
}

// pod is what uses a group's volumes.
func (f fleet) pod(group, turn int) *corev1.Pod {
	claims := make([]string, f.perNode)
	for i := range claims {
		claims[i] = claimName(group*f.perNode + i)
	}
	return fixture.Pod(fmt.Sprintf("pod-%05d-%d", group, turn), f.nodeOf(group, turn), claims...)
}

// boundPair creates a claim and a volume of a driver whose volumes are attached, bound
// to each other.
func (b *testbed) boundPair(i int) error {
	claim := fixture.Claim(fixture.ClaimNamed(claimName(i)), fixture.InClass(class))
	claim.Finalizers = []string{claimProtection}
	claim.Annotations = map[string]string{annBound: "yes", annBindCompleted: "yes"}
	claim.Spec.VolumeName = volumeName(i)
	if err := b.client.Create(b.ctx, claim); err != nil {
		return fmt.Errorf("creating a claim: %w", err)
	}
	pv := attachableVolume(i, claim)
	if err := b.client.Create(b.ctx, pv); err != nil {
		return fmt.Errorf("creating a volume: %w", err)
	}
	if err := barePhase(b.ctx, b.client, pv); err != nil {
		return fmt.Errorf("binding a volume: %w", err)
	}
	if err := bareStatus(b.ctx, b.client, claim, pv); err != nil {
		return fmt.Errorf("binding a claim: %w", err)
	}
	return nil
}

func attachableVolume(i int, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	pv := bareVolume(claim)
	pv.Name = volumeName(i)
	pv.Annotations[annProvisionedBy] = stowagev1alpha1.GCEDriver
	pv.Finalizers = append(pv.Finalizers, "kubernetes.io/pv-protection", attachFinalizer)
	pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle = stowagev1alpha1.GCEDriver, pv.Name
	return pv
}

// createFleet creates nodes and bound pairs, from a number on.
func (b *testbed) createFleet(nodes, volumes span) error {
	err := inParallel(b.ctx, nodes.n, func(i int) error {
		node := fleetNode(nodes.from + i)
		ready := node.DeepCopy()
		if err := b.client.Create(b.ctx, node); err != nil {
			return fmt.Errorf("creating a node: %w", err)
		}
		node.Status = ready.Status
		return b.client.Status().Update(b.ctx, node)
	})
	if err != nil {
		return err
	}
	return inParallel(b.ctx, volumes.n, func(i int) error { return b.boundPair(volumes.from + i) })
}

// createDisks creates the StorageBackend that the fleet's volumes lie in. No class is
// kept for it, and nothing is ever made in it.
func (b *testbed) createDisks() error {
	return b.client.Create(b.ctx, diskBackend())
}

func diskBackend() *stowagev1alpha1.StorageBackend {
	return &stowagev1alpha1.StorageBackend{
		ObjectMeta: metav1.ObjectMeta{Name: class},
		Spec: stowagev1alpha1.StorageBackendSpec{
			GCE:                     &stowagev1alpha1.GCEBackend{Project: "bench", Zones: []string{"zone"}},
			MaxConcurrentOperations: 1000,
		},
	}
}

// keeper is a pod without a node that uses a group's claims from the start: that a claim
// comes to be used, which is written to it, is no part of what is measured.
func (f fleet) keeper(group int) *corev1.Pod {
	keeper := f.pod(group, 0)
	keeper.Name, keeper.Spec.NodeName = fmt.Sprintf("keeper-%05d", group), ""
	return keeper
}

func (b *testbed) createKeepers(f fleet) error {
	return inParallel(b.ctx, f.nodes, func(group int) error { return b.client.Create(b.ctx, f.keeper(group)) })
}

func (b *testbed) createPods(f fleet, turn int) error {
	return inParallel(b.ctx, f.nodes, func(group int) error { return b.client.Create(b.ctx, f.pod(group, turn)) })
}

func (b *testbed) deletePods(f fleet, turn int) error {
	return inParallel(b.ctx, f.nodes, func(group int) error {
		return b.client.Delete(b.ctx, f.pod(group, turn), client.GracePeriodSeconds(0))
	})
}
