package demo_test

import (
	"os/exec"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
)

// clones: a volume that begins as a copy of another, which may go then.
func clones(s *scenario) {
	if _, err := exec.LookPath("mkfs.xfs"); err != nil {
		s.notShown("mkfs.xfs is missing here: install xfsprogs.")
	}
	var point mount.Point
	s.apply("copies.yaml", nil)
	s.apply("claim.yaml", values{"NAME": "origin", "CLASS": "copies", "SIZE": "300Mi"})
	s.apply("pod.yaml", values{"NAME": "origin", "CLAIM": "origin"})
	origin := "pvc-" + string(s.claim("origin").UID)
	s.check("the origin is mounted for its pod", "pod/origin", s.mounted("origin", origin, &point))
	s.write(point.Path)
	s.apply("copy.yaml", values{"NAME": "copy", "CLASS": "copies", "SIZE": "400Mi", "SOURCE": "origin"})
	s.apply("pod.yaml", values{"NAME": "copy", "CLAIM": "copy"})
	volume := "pvc-" + string(s.claim("copy").UID)
	s.check("its node is asked for a copy", "pvc/copy", func() error { return s.get(volume, &stowagev1alpha1.NodeVolume{}) })
	s.say("Where the disk can't share blocks between files, the copy waits until no pod uses the origin,\n" +
		"and the origin isn't removed before:")
	s.kubectl("delete", "pod/origin", "pvc/origin", "--wait=false")
	s.check("the copy is mounted for its pod", "pod/copy", s.mounted("copy", volume, &point))
	s.check("what was in the origin is in it", "pod/copy", func() error { return s.greets(point.Path)() })
	s.do(func() error { return fill(point.Path, 310*mebibyte) })
	s.say("It is larger than its origin: 310 MiB more fit.")
	s.check("the origin is gone", "pv/"+origin, s.isGone(origin, &corev1.PersistentVolume{}))
	s.kubectl("delete", "pod/copy", "pvc/copy", "--wait=false")
	s.check("the copy is gone", "pv/"+volume, s.isGone(volume, &corev1.PersistentVolume{}))
	s.kubectl("delete", "storagebackend/copies", "--wait=false")
}
