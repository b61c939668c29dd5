package upgrade_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/cluster"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// unmounted: all pods go, and then all claims.
func unmounted(s *spec) {
	scenario.Step("the new pod goes, and the others' containers work on", func() error {
		return errors.Join(s.stop(s.joining), s.stowage.EndPods(s.ctx, s.joining.Pod), s.worksOn(s.staying...))
	})
	scenario.Step("the others go", func() (err error) {
		var pods []*corev1.Pod
		for _, each := range s.staying {
			err, pods = errors.Join(err, s.stop(each)), append(pods, each.Pod)
		}
		return errors.Join(err, s.stowage.EndPods(s.ctx, pods...))
	})
	scenario.Soon(s.ctx, "nothing is mounted, no loop device and no record is left", s.noneOnNode)
	scenario.Soon(s.ctx, "the node has no volume in its status, and no disk of the cloud", s.noneAttached)
	scenario.Step("the claims go, and with them all volumes", func() (err error) {
		for _, owner := range []string{"staying", "leaving"} {
			for _, each := range claimed() {
				err = errors.Join(err, s.stowage.Delete(s.ctx, claimOf(owner, each)))
			}
		}
		return err
	})
	scenario.Soon(s.ctx, "the storage goes: on the node, in the cloud and on the server", s.noStorage)
	scenario.Step("so can the backends", func() error {
		var backends []client.Object
		for _, each := range s.backends() {
			backends = append(backends, each)
		}
		return s.stowage.Delete(s.ctx, backends...)
	})
}

func (s *spec) noneOnNode() error {
	var loops, files []string
	err := errors.Join(s.node.HasNoVolumes(s.ctx), s.node.Call(s.ctx, "Machine.Loops", guest.Nothing{}, &loops),
		s.node.Call(s.ctx, "Machine.Files", guest.AgentRoot, &files))
	// The one file of an agent that isn't a volume's.
	files = slices.DeleteFunc(files, func(file string) bool { return file == filepath.Join(guest.AgentRoot, "boot-id") })
	if err == nil && len(loops)+len(files) > 0 {
		err = fmt.Errorf("left are loop devices %q, and files %q", loops, files)
	}
	return err
}

func (s *spec) noneAttached() error {
	node := &corev1.Node{}
	attachments := &storagev1.VolumeAttachmentList{}
	err := errors.Join(s.stowage.Client.Get(s.ctx, client.ObjectKey{Name: s.node.Name}, node), s.stowage.Client.List(s.ctx, attachments))
	if err != nil {
		return err
	}
	attached, err := cluster.AttachedTo(s.ctx, s.cloud, project, zone)
	if err == nil && len(node.Status.VolumesAttached)+len(node.Status.VolumesInUse)+len(attachments.Items)+len(attached) > 0 {
		err = fmt.Errorf("the node has attached %v, in use %v; there are %d attachments; the cloud says %v",
			node.Status.VolumesAttached, node.Status.VolumesInUse, len(attachments.Items), attached)
	}
	return err
}

func (s *spec) noStorage() error {
	pvs, volumes := &corev1.PersistentVolumeList{}, &stowagev1alpha1.NodeVolumeList{}
	if err := errors.Join(s.stowage.Client.List(s.ctx, pvs), s.stowage.Client.List(s.ctx, volumes)); err != nil {
		return err
	}
	cloud, err := s.cloud.Disks.List(project, zone).Context(s.ctx).Do()
	if err == nil && len(pvs.Items)+len(volumes.Items)+len(cloud.Items) > 0 {
		err = fmt.Errorf("%d volumes, %d NodeVolumes, %d disks", len(pvs.Items), len(volumes.Items), len(cloud.Items))
	}
	return errors.Join(err, s.noFiles())
}

// noFiles: what Stowage has for itself may stay, the markers of disks and folders without a file.
func (s *spec) noFiles() error {
	var onServer, onNode, volumes []string
	err := errors.Join(Machine{}.Files(s.volumesDir(), &onServer), s.node.Call(s.ctx, "Machine.Files", s.stowage.Folder.Disks(), &onNode))
	onNode = slices.DeleteFunc(onNode, func(file string) bool { return filepath.Base(file) == ".stowage-disk" })
	for _, folder := range []string{directories, images} {
		var names []string
		err = errors.Join(err, s.node.Call(s.ctx, "Files.List", filepath.Join(s.stowage.Folder.Disks(), folder), &names))
		volumes = append(volumes, names...)
	}
	volumes = slices.DeleteFunc(volumes, func(name string) bool { return strings.HasPrefix(name, ".") })
	if err == nil && len(onServer)+len(onNode)+len(volumes) > 0 {
		err = fmt.Errorf("on the server %q, on the node %q and %q", onServer, onNode, volumes)
	}
	return err
}
