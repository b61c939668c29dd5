package demo_test

import (
	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
)

// reclaim: what becomes of a volume whose claim is deleted.
func reclaim(s *scenario) {
	var point mount.Point
	archive := s.cluster.Folder.Disks() + "/archive"
	volume := "pvc-" + string(s.claim("data").UID)

	s.say("A claim that a pod uses is protected:")
	s.kubectl("delete", "pvc/data", "--wait=false")
	s.check("the pod still has its volume", "pod/reader", s.mounted("reader", volume, &point))
	s.check("the data is there", "pvc/data", s.greets(s.onDisk(volume)))
	s.say("Once the pod is gone, so are the claim and, by policy Delete, the volume and its data:")
	s.kubectl("delete", "pod/reader", "--wait=false")
	s.check("the claim is gone", "pvc/data", s.isGone("data", &corev1.PersistentVolumeClaim{}))
	s.check("the volume is gone", "pv/"+volume, s.isGone(volume, &corev1.PersistentVolume{}))
	s.check("its NodeVolume is gone", "nodevolume/"+volume, s.isGone(volume, &stowagev1alpha1.NodeVolume{}))
	s.check("its directory is gone from the disk", "nodevolume/"+volume, s.exists(s.onDisk(volume), false))
	s.say("The volume made by hand has the policy Retain:")
	s.kubectl("delete", "pod/archivist", "pvc/archive", "--wait=false")
	s.check("the claim is gone", "pvc/archive", s.isGone("archive", &corev1.PersistentVolumeClaim{}))
	s.check("the volume is Released", "pv/archive", s.volumeIs("archive", corev1.VolumeReleased))
	s.check("its data is kept", "pv/archive", s.greets(archive))
}
