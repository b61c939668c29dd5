package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/volume"
	"github.com/stowage-dev/stowage/test/harness/fixture"
)

const (
	// annManaged has a node's attachments decided by the manager.
	annManaged = "volumes.kubernetes.io/controller-managed-attach-detach"

	attachFinalizer = "external-attacher/gce-stowage-dev"
)

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

func (f fleet) pod(group, turn int) *corev1.Pod {
	claims := make([]string, f.perNode)
	for i := range claims {
		claims[i] = claimName(group*f.perNode + i)
	}
	return fixture.Pod(fmt.Sprintf("pod-%05d-%d", group, turn), f.nodeOf(group, turn), claims...)
}

func attachableVolume(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	pv := bareVolume(claim)
	pv.Name = volumeOf(claim.Name)
	pv.Annotations[annProvisionedBy] = stowagev1alpha1.GCEDriver
	pv.Finalizers = append(pv.Finalizers, "kubernetes.io/pv-protection", attachFinalizer)
	pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle = stowagev1alpha1.GCEDriver, pv.Name
	return pv
}

func (b *testbed) createFleet(nodes, volumes span) error {
	err := inParallel(b.ctx, nodes.n, func(i int) error { return b.createNode(fleetNode(nodes.from + i)) })
	if err != nil {
		return err
	}
	return inParallel(b.ctx, volumes.n, func(i int) error { return b.createBound(volumes.from+i, attachableVolume) })
}

// diskBackend is the StorageBackend that the fleet's volumes lie in. No class is kept for
// it, and nothing is ever made in it.
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

func (b *testbed) createPods(f fleet, pod func(group int) *corev1.Pod) error {
	return inParallel(b.ctx, f.nodes, func(group int) error { return b.client.Create(b.ctx, pod(group)) })
}

func (b *testbed) deletePods(f fleet, turn int) error {
	return inParallel(b.ctx, f.nodes, func(group int) error {
		return b.client.Delete(b.ctx, f.pod(group, turn), client.GracePeriodSeconds(0))
	})
}

func (f fleet) inTurn(turn int) func(group int) *corev1.Pod {
	return func(group int) *corev1.Pod { return f.pod(group, turn) }
}

func uniqueName(volume int) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName("kubernetes.io/csi/" + stowagev1alpha1.GCEDriver + "^" + volumeName(volume))
}

func attachmentOf(volume int, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: attachmentName(volume, node), Finalizers: []string{attachFinalizer}},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: stowagev1alpha1.GCEDriver,
			NodeName: node,
			Source:   storagev1.VolumeAttachmentSource{PersistentVolumeName: new(volumeName(volume))},
		},
	}
}

func attachmentName(number int, node string) string {
	return volume.AttachmentName(stowagev1alpha1.GCEDriver, volumeName(number), node)
}

// nowhere is no turn of the fleet: nothing is attached.
const nowhere = -1

func (f fleet) attachments(turn int) map[string]bool {
	names := map[string]bool{}
	if turn == nowhere {
		return names
	}
	for i := range f.volumes() {
		names[attachmentName(i, f.nodeOf(f.group(i), turn))] = true
	}
	return names
}
