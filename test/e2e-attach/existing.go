package main

import (
	"errors"
	"fmt"

	"google.golang.org/api/compute/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/fixture"
	"github.com/stowage-dev/stowage/test/story"
)

// theirs is the name of a disk that somebody made, and of all that is about it.
const theirs = "theirs"

// existing: a disk that somebody made beforehand, which a volume object of the in-tree
// type names. It is attached and mounted as others are, and outlives all of it.
//
//proves:gcePersistentDisk/claim
func existing(s *tale) {
	s.Chapter("A disk that somebody made beforehand")
	s.Do("somebody makes a disk in the cloud", s.makeTheirs)
	volume := fixture.Volume(theirs, fixture.OfClass(theirs), fixture.Holding("10Gi"), fixture.Reclaimed(corev1.PersistentVolumeReclaimDelete))
	volume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: theirs}}
	var claim *corev1.PersistentVolumeClaim
	s.Do("a volume object names it, and a claim is bound to that", func() (err error) {
		if err = s.stowage.Create(s.Ctx, volume); err == nil {
			claim, err = s.claimFor(theirs, theirs)
		}
		return err
	})
	first := &corev1.Pod{}
	s.Do("a pod that uses it is told what to do", func() error {
		first = s.pod("theirs-1", 1, claim)
		return errors.Join(s.stowage.Create(s.Ctx, first), s.stowage.AwaitEvent(s.Ctx, first.Name, "FailedMount", "gce.existingDisks"))
	})
	s.Do("the administrator allows it", func() error {
		backend := namedBackend(patientClass)
		return s.stowage.Change(s.Ctx, backend, func() { backend.Spec.GCE.ExistingDisks = true })
	})
	s.Do("the pod writes a file", func() error {
		return errors.Join(s.stowage.AwaitMounted(s.Ctx, first), s.isAttached(claim, 1), s.writes(first, claim, "kept"), s.end(first))
	})
	s.Do("one on node 2 finds it", func() error {
		second := s.pod("theirs-2", 2, claim)
		return errors.Join(s.run(second), s.isAttached(claim, 2), s.finds(second, claim, "kept"), s.end(second))
	})
	s.Soon("the disk is attached nowhere", func() error { return s.isDetached(claim) })
	s.Do("claim and volume go", func() error { return s.stowage.Delete(s.Ctx, claim, volume) })
	s.Do(fmt.Sprintf("for %s the disk stays, though the volume's policy is Delete", shown), func() error { return s.stays(s.hasTheirs) })
	s.Do("somebody deletes it", func() error {
		_, err := s.cloud.Disks.Delete(project, zone, theirs).Context(s.Ctx).Do()
		return errors.Join(err, s.diskGoes(claim))
	})
}

func (s *tale) makeTheirs() error {
	_, err := s.cloud.Disks.Insert(project, zone, &compute.Disk{Name: theirs, SizeGb: 10}).Context(s.Ctx).Do()
	return errors.Join(err, story.Eventually(s.Ctx, s.hasTheirs))
}

func (s *tale) hasTheirs() error {
	disk, err := s.cloud.Disks.Get(project, zone, theirs).Context(s.Ctx).Do()
	if err == nil && disk.Status != "READY" {
		err = fmt.Errorf("it is %s", disk.Status)
	}
	return err
}
