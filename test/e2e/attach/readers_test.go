package attach_test

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/fixture"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

const (
	// readersClass is a class whose volumes have a disk in each zone, and the name of its backend.
	readersClass = "readers"
	otherZone    = "europe-west3-b"
)

// readInEachZone: a file system that pods of several nodes read at once, from a disk in each zone.
func readInEachZone(s *spec) {
	scenario.Step("a StorageBackend with two zones, and a class with disks in each are made", func() error {
		zones := backend(readersClass, "6m")
		zones.Spec.GCE.Zones = []string{zone, otherZone}
		zones.Spec.GCE.ClassParameters = []stowagev1alpha1.GCEClassParameter{stowagev1alpha1.GCEEachZoneParameter}
		zones.Spec.StorageClass = nil
		return s.stowage.Create(s.ctx, zones, inEachZone())
	})
	scenario.Soon(s.ctx, "it is Ready", func() error { return s.stowage.BackendIsReady(s.ctx, readersClass) })

	writer := s.pod("writer-of-snapshots", 1, s.data)
	scenario.Step("a pod writes a file", func() error {
		return errors.Join(s.run(writer), s.writes(writer, s.data, "kept"))
	})
	live, ofLive := s.takeSnapshot("live", s.data)
	scenario.Step("the pod ends", func() error { return errors.Join(s.end(writer), s.isDetachedSoon(s.data)) })
	quiet, ofQuiet := s.takeSnapshot("quiet", s.data)

	var dirty, clean *corev1.PersistentVolumeClaim
	reading := fixture.AskingModes(corev1.ReadOnlyMany)
	scenario.Step("claims that are only read are restored, with a disk in each zone", func() (err error) {
		clean, err = s.claimFor("clean", readersClass, fixture.Asking("15Gi"), reading, fromSnapshot(quiet))
		if err == nil {
			dirty, err = s.claimFor("dirty", readersClass, fixture.Asking("15Gi"), reading, fromSnapshot(live))
		}
		return errors.Join(err, s.hasDisks(clean, 1), s.hasDisks(dirty, 1))
	})
	first, second := s.pod("reader-1", 1, clean), s.pod("reader-2", 2, clean)
	scenario.Step("pods of two nodes read one at once", func() error {
		return errors.Join(s.run(first, second), s.finds(first, clean, "kept"), s.finds(second, clean, "kept"),
			s.isAttachedTo(clean, s.nodes[1].Name, s.nodes[2].Name))
	})
	scenario.Step("neither writes it", func() error {
		if s.writes(first, clean, "no more") == nil || s.writes(second, clean, "no more") == nil {
			return errors.New("a pod wrote it")
		}
		return s.finds(first, clean, "kept")
	})
	waiting := s.pod("reader-of-live", 1, dirty)
	scenario.Step("what was mounted when its snapshot was made isn't mounted, and an event says what to do", func() error {
		return errors.Join(s.stowage.Create(s.ctx, waiting), s.stowage.AwaitEvent(s.ctx, waiting.Name, "FailedMount", "its journal"))
	})
	scenario.Step("the pods end, and the disks go with their claims, in all zones", func() error {
		return errors.Join(s.end(first, second, waiting), s.stowage.Delete(s.ctx, clean), s.stowage.Delete(s.ctx, dirty),
			s.diskGoes(clean), s.diskGoes(dirty))
	})
	scenario.Soon(s.ctx, "none is left in the other zone", func() error { return errors.Join(s.hasDisks(clean, 0), s.hasDisks(dirty, 0)) })
	scenario.Step("the snapshots go", func() error { return errors.Join(s.deleteSnapshot(ofLive), s.deleteSnapshot(ofQuiet)) })
	scenario.Soon(s.ctx, "the cloud has none", s.hasNoSnapshot)
	scenario.Step("the class and the backend go", func() error {
		return errors.Join(s.stowage.Delete(s.ctx, inEachZone()), s.stowage.Delete(s.ctx, namedBackend(readersClass)))
	})
}

// inEachZone is a class whose volumes have a disk in each zone.
func inEachZone() *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: readersClass}, Provisioner: stowagev1alpha1.GCEDriver,
		Parameters: map[string]string{
			stowagev1alpha1.BackendParameter: readersClass, string(stowagev1alpha1.GCEEachZoneParameter): "true",
		},
	}
}

// hasDisks checks how many disks a claim has in the zone without nodes.
func (s *spec) hasDisks(claim *corev1.PersistentVolumeClaim, want int) error {
	list, err := s.cloud.Disks.List(project, otherZone).Context(s.ctx).Do()
	if err != nil {
		return err
	}
	found := 0
	for _, disk := range list.Items {
		if disk.Name == claim.Spec.VolumeName {
			found++
		}
	}
	if found != want {
		return fmt.Errorf("zone %s has %d disks %s, not %d", otherZone, found, claim.Spec.VolumeName, want)
	}
	return nil
}
