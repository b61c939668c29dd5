package attach_test

import (
	"errors"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// left: in the end nothing is, and never was a disk anywhere twice.
func left(s *spec) {
	scenario.Step("the last claim goes", func() error { return s.stowage.Delete(s.ctx, s.data) })
	scenario.Soon(s.ctx, "no volume and no attachment is left", s.noObjects)
	scenario.Step("no disk is left in the cloud, and none attached", func() error {
		attached, err := s.cloud.attachedTo(s.ctx)
		if err == nil && len(attached) > 0 {
			err = fmt.Errorf("attached are %v", attached)
		}
		return errors.Join(err, s.diskGoes(s.data), s.noDisks())
	})
	scenario.Step("nothing is left on the nodes", func() error { return s.nothingOnNodes(1, 2) })
	scenario.Step("the backends can go", func() error {
		return s.stowage.Delete(s.ctx, namedBackend(patientClass), namedBackend(hastyClass))
	})
	scenario.Step("no two nodes ever had a disk open to write, as the machine's kernel saw it", s.watcher.verdict)
	scenario.Step("no disk was ever attached to two nodes, as the cloud's journal has it", func() error {
		journal, err := s.cloud.journal()
		if err != nil {
			return err
		}
		attachments, err := neverTwice(strings.Join(append(s.cloud.journals, journal), ""), s.shared...)
		if err == nil && attachments == 0 {
			err = errors.New("it has no attachment")
		}
		return err
	})
	scenario.Step("no call ever tried to attach one to two", func() error { return neverTried(s.cloud.LogFile) })
}

func namedBackend(name string) *stowagev1alpha1.StorageBackend {
	backend := &stowagev1alpha1.StorageBackend{}
	backend.Name = name
	return backend
}

func (s *spec) noObjects() error {
	for _, list := range []client.ObjectList{&corev1.PersistentVolumeList{}, &storagev1.VolumeAttachmentList{}} {
		if err := s.stowage.Client.List(s.ctx, list); err != nil {
			return err
		}
		switch all := list.(type) {
		case *corev1.PersistentVolumeList:
			if len(all.Items) > 0 {
				return fmt.Errorf("%d volumes: %+v", len(all.Items), all.Items[0].Status)
			}
		case *storagev1.VolumeAttachmentList:
			if len(all.Items) > 0 {
				return fmt.Errorf("%d attachments: %+v", len(all.Items), all.Items[0].Status)
			}
		}
	}
	return nil
}

func (s *spec) noDisks() error {
	disks, err := s.cloud.Disks.List(project, zone).Context(s.ctx).Do()
	if err != nil {
		return err
	}
	if len(disks.Items) > 0 {
		return fmt.Errorf("there are %d disks, such as %s", len(disks.Items), disks.Items[0].Name)
	}
	images, err := os.ReadDir(s.watcher.images)
	if err == nil && len(images) > 0 {
		err = fmt.Errorf("the contents of %d disks are left", len(images))
	}
	return err
}
