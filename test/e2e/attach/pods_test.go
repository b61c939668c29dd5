package attach_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi"
	"github.com/stowage-dev/stowage/test/harness/fixture"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// Backends, and the classes that Stowage keeps for them.
const (
	patientClass = "cloud"
	hastyClass   = "hasty"
	// hastyAfter is how long a node must have been away before a volume of the hasty
	// backend is taken from it.
	hastyAfter = 20 * time.Second

	// fileName is the file that pods write.
	fileName = "greeting"
)

// backend is a StorageBackend in the cloud.
func backend(name string, forceDetachAfter string) *stowagev1alpha1.StorageBackend {
	return fixture.LocalBackend(name, func(backend *stowagev1alpha1.StorageBackend) {
		backend.Spec.Local = nil
		backend.Spec.StorageClass.AllowVolumeExpansion = true
		backend.Spec.GCE = &stowagev1alpha1.GCEBackend{Project: project, Zones: []string{zone}, Endpoint: endpoint}
		backend.Spec.Attachment = stowagev1alpha1.AttachmentPolicy{ForceDetachAfter: forceDetachAfter}
	})
}

// claimFor makes a claim, and waits until it is bound.
func (s *spec) claimFor(name, class string, options ...func(*corev1.PersistentVolumeClaim)) (*corev1.PersistentVolumeClaim, error) {
	options = append([]func(*corev1.PersistentVolumeClaim){fixture.ClaimNamed(name), fixture.InClass(class), fixture.Asking("10Gi")}, options...)
	claim := fixture.Claim(options...)
	return claim, s.stowage.CreateBound(s.ctx, claim)
}

// pod is one on a node that uses a claim.
func (s *spec) pod(name string, node int, claim *corev1.PersistentVolumeClaim) *corev1.Pod {
	pod := fixture.Pod(name, s.nodes[node].Name, claim.Name)
	if claim.Spec.VolumeMode != nil && *claim.Spec.VolumeMode == corev1.PersistentVolumeBlock {
		pod.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: claim.Name, DevicePath: "/dev/data"}}
	}
	return pod
}

func (s *spec) run(pods ...*corev1.Pod) error { return s.stowage.RunPods(s.ctx, pods...) }

func (s *spec) end(pods ...*corev1.Pod) error { return s.stowage.EndPods(s.ctx, pods...) }

// forceEnd deletes pods at once, as pod clean-up does for a node that is dead.
func (s *spec) forceEnd(pods ...*corev1.Pod) error {
	for _, pod := range pods {
		if err := s.stowage.Client.Delete(s.ctx, pod, client.GracePeriodSeconds(0)); err != nil {
			return err
		}
	}
	return nil
}

// inClaim is a file of a pod's claim, on the pod's node.
func inClaim(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) string {
	plugin := csi.Plugin{}
	return filepath.Join(plugin.Path(guest.VolumeDir(pod, plugin.Name(), claim.Spec.VolumeName)), fileName)
}

func (s *spec) writes(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim, content string) error {
	return s.stowage.NodeOf(pod).Write(s.ctx, inClaim(pod, claim), content)
}

func (s *spec) finds(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim, want string) error {
	return s.stowage.NodeOf(pod).Reads(s.ctx, inClaim(pod, claim), want)
}

// isAttached reports whether the cloud has a claim's disk attached to a node, and to no
// other.
func (s *spec) isAttached(claim *corev1.PersistentVolumeClaim, node int) error {
	return s.isAttachedTo(claim, s.nodes[node].Name)
}

// isDetached reports whether the cloud has a claim's disk attached to no node.
func (s *spec) isDetached(claim *corev1.PersistentVolumeClaim) error { return s.isAttachedTo(claim) }

// isDetachedSoon waits until the cloud has a claim's disk attached to no node.
func (s *spec) isDetachedSoon(claim *corev1.PersistentVolumeClaim) error {
	return scenario.Eventually(s.ctx, func() error { return s.isDetached(claim) })
}

func (s *spec) isAttachedTo(claim *corev1.PersistentVolumeClaim, want ...string) error {
	attached, err := s.cloud.attachedTo(s.ctx)
	if err == nil && !slices.Equal(attached[claim.Spec.VolumeName], want) {
		err = fmt.Errorf("disk %s is attached to %q, not %q", claim.Spec.VolumeName, attached[claim.Spec.VolumeName], want)
	}
	return err
}

// shown is for how long a check is repeated of what must not happen.
const shown = 5 * time.Second

// stays reports whether something holds each time that it is checked for so long.
func (s *spec) stays(holds func() error) error {
	for deadline := time.Now().Add(shown); time.Now().Before(deadline); {
		if err := holds(); err != nil {
			return err
		}
		select {
		case <-s.ctx.Done():
			return s.ctx.Err()
		case <-time.After(shown / 20):
		}
	}
	return nil
}

// attachments are the VolumeAttachments of a claim's volume.
func (s *spec) attachments(claim *corev1.PersistentVolumeClaim) ([]storagev1.VolumeAttachment, error) {
	list := &storagev1.VolumeAttachmentList{}
	err := s.stowage.Client.List(s.ctx, list)
	return slices.DeleteFunc(list.Items, func(attachment storagev1.VolumeAttachment) bool {
		return *attachment.Spec.Source.PersistentVolumeName != claim.Spec.VolumeName
	}), err
}

// nothingOnNodes reports whether nodes have nothing of volumes: no mount, no directory,
// no attachment, and nothing in their status.
func (s *spec) nothingOnNodes(numbers ...int) error {
	return scenario.Eventually(s.ctx, func() error {
		for _, number := range numbers {
			node := s.nodes[number]
			err := errors.Join(node.HasNoVolumes(s.ctx), s.statusIsEmpty(node.Name))
			if err != nil {
				return fmt.Errorf("%s: %w", node.Name, err)
			}
		}
		return nil
	})
}

func (s *spec) statusIsEmpty(name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := s.stowage.Client.Get(s.ctx, client.ObjectKeyFromObject(node), node); err != nil {
		return err
	}
	if len(node.Status.VolumesAttached)+len(node.Status.VolumesInUse) > 0 {
		return fmt.Errorf("its status has attached %v, in use %v", node.Status.VolumesAttached, node.Status.VolumesInUse)
	}
	attachments := &storagev1.VolumeAttachmentList{}
	if err := s.stowage.Client.List(s.ctx, attachments); err != nil {
		return err
	}
	for _, attachment := range attachments.Items {
		if attachment.Spec.NodeName == name {
			return fmt.Errorf("there is attachment %s of %s", attachment.Name, *attachment.Spec.Source.PersistentVolumeName)
		}
	}
	return nil
}
