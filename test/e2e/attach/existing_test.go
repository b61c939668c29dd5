package attach_test

import (
	"errors"
	"fmt"

	"google.golang.org/api/compute/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/harness/fixture"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// theirs is the name of a disk that Stowage didn't make, and of its objects.
const theirs = "theirs"

// existing: a disk that an administrator made beforehand, which a volume object of the
// in-tree type names. It is attached and mounted as others are, and outlives all of it.
func existing(s *spec) {
	scenario.Step("an administrator makes a disk in the cloud", s.makeTheirs)
	volume := fixture.Volume(theirs, fixture.OfClass(theirs), fixture.Holding("10Gi"), fixture.Reclaimed(corev1.PersistentVolumeReclaimDelete))
	volume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: theirs}}
	var claim *corev1.PersistentVolumeClaim
	scenario.Step("a volume object names it, and a claim is bound to that", func() (err error) {
		if err = s.stowage.Create(s.ctx, volume); err == nil {
			claim, err = s.claimFor(theirs, theirs)
		}
		return err
	})
	first := &corev1.Pod{}
	scenario.Step("an event of a pod that uses it says what to do", func() error {
		first = s.pod("theirs-1", 1, claim)
		return errors.Join(s.stowage.Create(s.ctx, first), s.stowage.AwaitEvent(s.ctx, first.Name, "FailedMount", "gce.existingDisks"))
	})
	scenario.Step("the administrator allows existing disks", func() error {
		backend := namedBackend(patientClass)
		return s.stowage.Change(s.ctx, backend, func() { backend.Spec.GCE.ExistingDisks = true })
	})
	scenario.Step("the pod writes a file", func() error {
		return errors.Join(s.stowage.AwaitMounted(s.ctx, first), s.isAttached(claim, 1), s.writes(first, claim, "kept"), s.end(first))
	})
	scenario.Step("one on node 2 finds it", func() error {
		second := s.pod("theirs-2", 2, claim)
		return errors.Join(s.run(second), s.isAttached(claim, 2), s.finds(second, claim, "kept"), s.end(second))
	})
	scenario.Soon(s.ctx, "the disk is attached nowhere", func() error { return s.isDetached(claim) })
	scenario.Step("claim and volume go", func() error { return s.stowage.Delete(s.ctx, claim, volume) })
	scenario.Step(fmt.Sprintf("for %s the disk stays, though the volume's policy is Delete", shown), func() error { return s.stays(s.hasTheirs) })
	scenario.Step("the administrator deletes it", func() error {
		_, err := s.cloud.Disks.Delete(project, zone, theirs).Context(s.ctx).Do()
		return errors.Join(err, s.diskGoes(claim))
	})
}

func (s *spec) makeTheirs() error {
	_, err := s.cloud.Disks.Insert(project, zone, &compute.Disk{Name: theirs, SizeGb: 10}).Context(s.ctx).Do()
	return errors.Join(err, scenario.Eventually(s.ctx, s.hasTheirs))
}

func (s *spec) hasTheirs() error {
	disk, err := s.cloud.Disks.Get(project, zone, theirs).Context(s.ctx).Do()
	if err == nil && disk.Status != "READY" {
		err = fmt.Errorf("it is %s", disk.Status)
	}
	return err
}
