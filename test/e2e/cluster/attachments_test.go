package cluster_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/fixture"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// A disk of an in-tree type, and what kubelets take it for.
const (
	inTreeDisk   = "in-tree"
	inTreeHandle = "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/" + inTreeDisk
	inTreeDriver = "pd.csi.storage.gke.io"
)

// attachments: volumesAttached has the names by which kubelets know volumes, those of in-tree
// types, too, until kubelets no longer use them, whichever controller decides what is attached.
func attachments(n *namespace) {
	claim := n.claim(disks, "16Mi")
	pod := n.pod("ours", on(node1), with(data))
	scenario.Step("a pod with a disk runs", func() error { return n.launch(claim, pod) })
	handle := ""
	scenario.Step("volumesAttached has what the kubelet uses, by the name of its attachment", func() error {
		volume, err := n.volume(claim)
		if err != nil {
			return err
		}
		handle = volume.Spec.CSI.VolumeHandle
		return n.soon(func() error { return n.isAttachedAndUsed(stowagev1alpha1.GCEDriver, handle) })
	})
	scenario.Step("it goes", func() error { return n.remove(pod) })
	n.Soon("and nothing of that is left", func() error { return n.isForgotten(stowagev1alpha1.GCEDriver, handle) })
	n.inTree()
}

// inTree is about a volume of which the kubelet believes that another driver has it,
// which isn't there: the spec plays its attacher.
func (n *namespace) inTree() {
	volume := fixture.Volume(inTreeDisk, fixture.OfClass(inTreeDisk))
	volume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: inTreeDisk}}
	claim := n.claim(inTreeDisk, "1Gi")
	claim.Name = inTreeDisk
	pod := n.pod(inTreeDisk, on(node1), with(inTreeDisk))
	scenario.Step("a pod has a disk of an in-tree type", func() error { return n.create(volume, claim, pod) })
	n.Soon("there is an attachment for the driver that took its place", func() error { return n.attach(inTreeDriver, inTreeHandle) })
	n.Soon("once it is attached, volumesAttached and volumesInUse have it", func() error { return n.isAttachedAndUsed(inTreeDriver, inTreeHandle) })
	scenario.Step("the pod goes", func() error { return n.remove(pod) })
	n.Soon("and nothing of that is left", func() error { return n.isForgotten(inTreeDriver, inTreeHandle) })
	scenario.Step("claim and volume go", func() error { return n.remove(claim, volume) })
}

// attachmentTo is the one of node1, by the name that the kubelet looks for.
func (n *namespace) attachmentTo(driver, handle string) (*storagev1.VolumeAttachment, error) {
	attachment := &storagev1.VolumeAttachment{}
	attachment.Name = fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+driver+node1)))
	return attachment, n.get(attachment)
}

// attach does what a driver's attacher does.
func (n *namespace) attach(driver, handle string) error {
	attachment, err := n.attachmentTo(driver, handle)
	if err != nil {
		return err
	}
	if attachment.Spec.Attacher != driver || attachment.Spec.NodeName != node1 {
		return fmt.Errorf("it is %+v", attachment.Spec)
	}
	before := attachment.DeepCopy()
	attachment.Status.Attached = true
	return n.cluster.Client.Status().Patch(n.ctx, attachment, client.MergeFrom(before))
}

// isAttachedAndUsed reports whether a volume is attached to node1, is in its volumesAttached,
// and is used there.
func (n *namespace) isAttachedAndUsed(driver, handle string) error {
	attachment, err := n.attachmentTo(driver, handle)
	if err == nil && !attachment.Status.Attached {
		err = fmt.Errorf("attachment %s: %+v", attachment.Name, attachment.Status)
	}
	attached, used, unread := n.knownTo(node1, driver, handle)
	if unread == nil && (len(attached) != 1 || attached[0].DevicePath != "" || !used) {
		unread = fmt.Errorf("volumesAttached of node1 has %+v, uses it: %t", attached, used)
	}
	return errors.Join(err, unread)
}

// isForgotten reports whether no object has a volume on node1 any more.
func (n *namespace) isForgotten(driver, handle string) error {
	if attachment, err := n.attachmentTo(driver, handle); client.IgnoreNotFound(err) != nil || err == nil {
		return errors.Join(err, fmt.Errorf("attachment %s is there", attachment.Name))
	}
	attached, used, err := n.knownTo(node1, driver, handle)
	if err == nil && (len(attached) > 0 || used) {
		err = fmt.Errorf("volumesAttached of node1 has %+v, uses it: %t", attached, used)
	}
	return err
}

// knownTo returns what volumesAttached of a node has of a volume, and whether its kubelet
// reports that it uses it.
func (n *namespace) knownTo(name, driver, handle string) (attached []corev1.AttachedVolume, used bool, err error) {
	node := &corev1.Node{}
	node.Name = name
	if err := n.get(node); err != nil {
		return nil, false, err
	}
	unique := corev1.UniqueVolumeName("kubernetes.io/csi/" + driver + "^" + handle)
	for _, one := range node.Status.VolumesAttached {
		if one.Name == unique {
			attached = append(attached, one)
		}
	}
	return attached, slices.Contains(node.Status.VolumesInUse, unique), nil
}
