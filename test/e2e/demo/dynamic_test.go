package demo_test

import (
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/internal/mount"
)

// dynamicVolume: a class makes a volume for a claim.
func dynamicVolume(s *scenario) {
	var point mount.Point

	s.say("An administrator says once where storage comes from.")
	s.apply("backend.yaml", nil)
	s.check("the StorageBackend is Ready", "storagebackend/fast",
		s.backendIs("fast", metav1.ConditionTrue, ""))
	s.check("Stowage keeps a StorageClass for it", "storageclass/fast",
		func() error { return s.get("fast", &storagev1.StorageClass{}) })
	s.say("A user claims 1Gi of that class and runs a pod.")
	s.apply("claim.yaml", values{"NAME": "data", "CLASS": "fast", "SIZE": "1Gi"})
	s.apply("pod.yaml", values{"NAME": "writer", "CLAIM": "data"})
	volume := "pvc-" + string(s.claim("data").UID)
	s.check("the claim is Bound to a new volume, named after its uid", "pvc/data", s.claimIsBound("data", volume))
	s.check("the volume is Bound to the claim", "pv/"+volume, s.volumeIs(volume, corev1.VolumeBound))
	s.check("its directory is on the node's disk", "nodevolume/"+volume, s.exists(s.onDisk(volume), true))
	s.check("it is mounted in the pod's directory", "pod/writer", s.mounted("writer", volume, &point))
	s.write(point.Path)
	s.check("the file is on the disk", "nodevolume/"+volume, s.greets(s.onDisk(volume)))
}

// onDisk is where a volume of the backend "fast" lies.
func (s *scenario) onDisk(volume string) string {
	return filepath.Join(s.cluster.Folder.Disks(), "fast", volume)
}
