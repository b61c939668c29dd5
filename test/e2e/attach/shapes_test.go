package attach_test

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi"
	"github.com/stowage-dev/stowage/test/harness/fixture"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

const gibibyte = 1 << 30

// raw: a disk that pods see as a device.
func raw(s *spec) {
	var claim *corev1.PersistentVolumeClaim
	scenario.Step("a claim of volumeMode Block is given a disk", func() (err error) {
		claim, err = s.claimFor("raw", patientClass, fixture.AskingBlock())
		return err
	})
	scenario.Step("a pod on node 1 writes to the device", func() error {
		pod := s.pod("raw-1", 1, claim)
		return errors.Join(s.run(pod), s.writesDevice(pod, claim, "raw data"), s.end(pod))
	})
	scenario.Step("a pod on node 2 reads it from the device", func() error {
		pod := s.pod("raw-2", 2, claim)
		return errors.Join(s.run(pod), s.readsDevice(pod, claim, "raw data"), s.end(pod))
	})
	scenario.Step("with the claim, the disk goes", func() error {
		return errors.Join(s.stowage.Delete(s.ctx, claim), s.diskGoes(claim))
	})
}

func deviceOf(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) string {
	return guest.DevicePath(pod, csi.DevicePlugin{}.Name(), claim.Spec.VolumeName)
}

func (s *spec) writesDevice(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim, text string) error {
	return s.stowage.NodeOf(pod).Call(s.ctx, "Devices.Write", Block{Path: deviceOf(pod, claim), Content: text}, &guest.Nothing{})
}

func (s *spec) readsDevice(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim, want string) error {
	var got string
	err := s.stowage.NodeOf(pod).Call(s.ctx, "Devices.Read", Block{Path: deviceOf(pod, claim), Content: want}, &got)
	if err == nil && got != want {
		err = fmt.Errorf("it reads %q, not %q", got, want)
	}
	return err
}

// diskGoes waits until the cloud has no disk for a claim any more.
func (s *spec) diskGoes(claim *corev1.PersistentVolumeClaim) error {
	return scenario.Eventually(s.ctx, func() error {
		disks, err := s.cloud.Disks.List(project, zone).Context(s.ctx).Do()
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

// grown: a disk that grows while a pod uses it. A guest's kernel sees it when the disk is
// attached the next time.
func grown(s *spec) {
	before, after := s.pod("before", 1, s.data), s.pod("after", 2, s.data)
	scenario.Step("a pod on node 1 uses it", func() error { return s.run(before) })
	scenario.Step("the claim requests more", func() error {
		return s.stowage.Change(s.ctx, s.data, func() { s.data.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("12Gi") })
	})
	scenario.Soon(s.ctx, "the disk is larger", func() error {
		disk, err := s.cloud.Disks.Get(project, zone, s.data.Spec.VolumeName).Context(s.ctx).Do()
		if err == nil && disk.SizeGb != 12 {
			err = fmt.Errorf("it has %d GB", disk.SizeGb)
		}
		return err
	})
	scenario.Step("the pod goes on, and the claim doesn't promise what its node can't see", func() error {
		return errors.Join(s.finds(before, s.data, "kept"), s.writes(before, s.data, "grown"), s.hasCapacity("10Gi"))
	})
	scenario.Step("the pod moves to node 2, and finds its file", func() error {
		return errors.Join(s.end(before), s.run(after), s.finds(after, s.data, "grown"))
	})
	scenario.Soon(s.ctx, "the claim has the new size", func() error { return s.hasCapacity("12Gi") })
	scenario.Step("and so has the file system", func() error { return s.holds(after, s.data, 11*gibibyte) })
	scenario.Step("the pod ends", func() error { return errors.Join(s.writes(after, s.data, "kept"), s.end(after)) })
}

func (s *spec) hasCapacity(size string) error {
	if err := s.stowage.Client.Get(s.ctx, client.ObjectKeyFromObject(s.data), s.data); err != nil {
		return err
	}
	if has := s.data.Status.Capacity.Storage(); has.Cmp(resource.MustParse(size)) != 0 {
		return fmt.Errorf("claim %s has %s, not %s: %+v", s.data.Name, has, size, s.data.Status.Conditions)
	}
	return nil
}
