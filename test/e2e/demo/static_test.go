package demo_test

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
)

// What pods write, and where.
const (
	greeting     = "hello from the first pod"
	greetingFile = "greeting"
)

// staticVolume: a volume made by hand is bound to the claim that it fits.
func staticVolume(s *scenario) {
	disk := s.cluster.Folder.Disks() + "/archive"
	var point mount.Point

	s.say("An administrator makes a volume of 10Gi. A user claims 10Gi, without a class,\n" +
		"and runs a pod that has the claim at /archive.")
	s.apply("static.yaml", nil)
	s.check("the claim is Bound to the volume", "pvc/archive", s.claimIsBound("archive", "archive"))
	s.check("the volume is Bound to the claim", "pv/archive", s.volumeIs("archive", corev1.VolumeBound))
	s.check("the volume is mounted in the pod's directory", "pod/archivist", s.mounted("archivist", "archive", &point))
	s.say("There is no container runtime here: the demo writes in the pod's stead.")
	s.write(point.Path)
	s.check("the file is in the volume, "+s.short(disk), "pv/archive", s.greets(disk))
}
