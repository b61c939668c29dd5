package main

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi"
	"github.com/stowage-dev/stowage/test/fixture"
	"github.com/stowage-dev/stowage/test/guests"
	"github.com/stowage-dev/stowage/test/story"
)

const gibibyte = 1 << 30

// raw: a disk that pods see as a device.
//
//proves:csi/gce-Block
func raw(s *tale) {
	s.Chapter("A disk as a block device")
	var claim *corev1.PersistentVolumeClaim
	s.Do("a claim of volumeMode Block is given a disk", func() (err error) {
		claim, err = s.claimFor("raw", patientClass, fixture.AskingBlock())
		return err
	})
	s.Do("a pod on node 1 writes to the device", func() error {
		pod := s.pod("raw-1", 1, claim)
		return errors.Join(s.run(pod), s.writesDevice(pod, claim, "raw data"), s.end(pod))
	})
	s.Do("a pod on node 2 reads it from the device", func() error {
		pod := s.pod("raw-2", 2, claim)
		return errors.Join(s.run(pod), s.readsDevice(pod, claim, "raw data"), s.end(pod))
	})
	s.Do("with the claim, the disk goes", func() error {
		return errors.Join(s.stowage.Delete(s.Ctx, claim), s.diskGoes(claim))
	})
}

func deviceOf(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) string {
	return guests.DevicePath(pod, csi.DevicePlugin{}.Name(), claim.Spec.VolumeName)
}

func (s *tale) writesDevice(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim, text string) error {
	return s.stowage.NodeOf(pod).Ask("Devices.Write", Block{Path: deviceOf(pod, claim), Content: text}, &guests.Nothing{})
}

func (s *tale) readsDevice(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim, want string) error {
	var got string
	err := s.stowage.NodeOf(pod).Ask("Devices.Read", Block{Path: deviceOf(pod, claim), Content: want}, &got)
	if err == nil && got != want {
		err = fmt.Errorf("it reads %q, not %q", got, want)
	}
	return err
}

// diskGoes waits until the cloud has no disk for a claim any more.
func (s *tale) diskGoes(claim *corev1.PersistentVolumeClaim) error {
	return story.Eventually(s.Ctx, func() error {
		disks, err := s.cloud.Disks.List(project, zone).Context(s.Ctx).Do()
		if err != nil {
			return err
		}
		for _, disk := range disks.Items {
			if disk.Name == claim.Spec.VolumeName {
				return fmt.Errorf("disk %s is there", disk.Name)
			}
		}
		return nil
	})
}

// grown: a disk that grows while a pod uses it. A guest's kernel learns of it when the
// disk is attached the next time.
//
//proves:csi/expansion
func grown(s *tale) {
	s.Chapter("A disk grows")
	before, after := s.pod("before", 1, s.data), s.pod("after", 2, s.data)
	s.Do("a pod on node 1 uses it", func() error { return s.run(before) })
	s.Do("the claim is asked to grow", func() error {
		return s.stowage.Change(s.Ctx, s.data, func() { s.data.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("12Gi") })
	})
	s.Soon("the disk is larger", func() error {
		disk, err := s.cloud.Disks.Get(project, zone, s.data.Spec.VolumeName).Context(s.Ctx).Do()
		if err == nil && disk.SizeGb != 12 {
			err = fmt.Errorf("it has %d GB", disk.SizeGb)
		}
		return err
	})
	s.Do("the pod goes on, and the claim doesn't promise what its node can't see", func() error {
		return errors.Join(s.finds(before, s.data, "kept"), s.writes(before, s.data, "grown"), s.hasCapacity("10Gi"))
	})
	s.Do("the pod moves to node 2, and finds its file", func() error {
		return errors.Join(s.end(before), s.run(after), s.finds(after, s.data, "grown"))
	})
	s.Soon("the claim has the new size", func() error { return s.hasCapacity("12Gi") })
	s.Do("and so has the file system", func() error {
		var size int64
		err := s.nodes[2].Ask("Devices.Capacity", inClaim(after, s.data), &size)
		if err == nil && size < 11*gibibyte {
			err = fmt.Errorf("it can hold %d bytes", size)
		}
		return err
	})
	s.Do("the pod ends", func() error { return errors.Join(s.writes(after, s.data, "kept"), s.end(after)) })
}

func (s *tale) hasCapacity(size string) error {
	if err := s.stowage.Client.Get(s.Ctx, client.ObjectKeyFromObject(s.data), s.data); err != nil {
		return err
	}
	if has := s.data.Status.Capacity.Storage(); has.Cmp(resource.MustParse(size)) != 0 {
		return fmt.Errorf("claim %s has %s, not %s: %+v", s.data.Name, has, size, s.data.Status.Conditions)
	}
	return nil
}
