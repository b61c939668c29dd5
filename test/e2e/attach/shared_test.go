package attach_test

import (
	"errors"
	"path"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/harness/fixture"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// sharedClass is a backend of disks that several machines can write.
const sharedClass = "shared"

// sharedByNodes: a device that pods of two nodes write at once.
func sharedByNodes(s *spec) {
	scenario.Step("a StorageBackend of Hyperdisks is made", func() error {
		hyperdisks := backend(sharedClass, "6m")
		hyperdisks.Spec.GCE.DiskType = "hyperdisk-balanced"
		return s.stowage.Create(s.ctx, hyperdisks)
	})
	scenario.Soon(s.ctx, "it is Ready", func() error { return s.stowage.BackendIsReady(s.ctx, sharedClass) })
	var claim *corev1.PersistentVolumeClaim
	scenario.Step("a claim of access mode ReadWriteMany is given a disk that can be shared", func() (err error) {
		claim, err = s.claimFor("shared", sharedClass, fixture.AskingBlock(), fixture.AskingModes(corev1.ReadWriteMany))
		return errors.Join(err, s.mayBeShared(claim))
	})
	first, second := s.pod("first", 1, claim), s.pod("second", 2, claim)
	scenario.Step("pods of two nodes use it at once", func() error {
		return errors.Join(s.run(first, second), s.isAttachedTo(claim, s.nodes[1].Name, s.nodes[2].Name))
	})
	scenario.Step("what one writes, the other reads", func() error {
		return errors.Join(s.writesDevice(first, claim, "of node 1"), s.readsDevice(second, claim, "of node 1"))
	})
	scenario.Step("when one pod ends, the other node keeps the disk", func() error {
		return errors.Join(s.end(first), scenario.Eventually(s.ctx, func() error { return s.isAttached(claim, 2) }),
			s.writesDevice(second, claim, "of node 2"))
	})
	scenario.Step("a pod on the first node reads that", func() error {
		again := s.pod("again", 1, claim)
		return errors.Join(s.run(again), s.readsDevice(again, claim, "of node 2"), s.end(again, second))
	})
	scenario.Step("with the claim, the disk goes", func() error {
		return errors.Join(s.stowage.Delete(s.ctx, claim), s.diskGoes(claim))
	})
	scenario.Step("the backend goes", func() error { return s.stowage.Delete(s.ctx, namedBackend(sharedClass)) })
}

// mayBeShared checks that the cloud lets several machines write a claim's disk. Of that disk alone, two users are no mistake.
func (s *spec) mayBeShared(claim *corev1.PersistentVolumeClaim) error {
	disk, err := s.cloud.Disks.Get(project, zone, claim.Spec.VolumeName).Context(s.ctx).Do()
	if err != nil {
		return err
	}
	if disk.AccessMode != "READ_WRITE_MANY" {
		return errors.New("its access mode is " + disk.AccessMode)
	}
	s.shared = append(s.shared, path.Join("projects", project, "zones", zone, "disks", disk.Name))
	s.watcher.share(strconv.FormatUint(disk.Id, 10) + ".img")
	return nil
}
