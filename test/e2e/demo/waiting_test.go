package demo_test

import corev1 "k8s.io/api/core/v1"

// waiting: a claim that nothing fits says why.
func waiting(s *scenario) {
	var said string

	s.say("There is a free volume of 5Gi, and one of 10Gi that was released. A user claims 10Gi.")
	s.apply("small_volume.yaml", nil)
	s.check("the volume is Available", "pv/small", s.volumeIs("small", corev1.VolumeAvailable))
	s.apply("claim.yaml", values{"NAME": "hopeful", "CLASS": `""`, "SIZE": "10Gi"})
	s.check("the claim is Pending, with the reason in a condition", "pvc/hopeful",
		s.claimSays("hopeful", &said, "too small", "5Gi"))
	s.quote(said)
	s.check("and in an event", "pvc/hopeful", s.eventTells("hopeful", "FailedBinding"))
	s.say("Nothing has to be restarted or awaited when a volume that fits appears: the user asks for less.")
	s.kubectl("delete", "pvc/hopeful", "--wait=false")
	s.check("the claim is gone", "pvc/hopeful", s.isGone("hopeful", &corev1.PersistentVolumeClaim{}))
	s.apply("claim.yaml", values{"NAME": "modest", "CLASS": `""`, "SIZE": "3Gi"})
	s.check("a claim of 3Gi is Bound to the volume of 5Gi", "pvc/modest", s.claimIsBound("modest", "small"))
	s.kubectl("delete", "pvc/modest", "pv/small", "--wait=false")
	s.check("both can be deleted", "pv/small", s.isGone("small", &corev1.PersistentVolume{}))
}
