package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/kubenode"
)

// left: once all pods and claims have gone, nothing of their volumes is anywhere.
func left(s *scene) {
	if s.bed.hasProblems() {
		return // what stories that failed made stays to be looked at
	}
	s.Soon("no namespace of a story is left", s.noNamespaces)
	s.Soon("no volume, local volume nor attachment is left", s.noObjects)
	s.Do("no disk in a cloud", func() error { return errors.Join(s.noDisks(s.bed.cloud), s.noDisks(s.bed.machinesCloud)) })
	s.Do("no directory on the NFS server", s.emptyShare)
	s.Soon("no mount on a node", func() error { return s.bed.Each(unmounted) })
}

func (b *bed) hasProblems() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.problems) > 0
}

func (s *scene) noNamespaces() error {
	all := &corev1.NamespaceList{}
	if err := s.bed.Client.List(s.Ctx, all); err != nil {
		return err
	}
	for _, one := range all.Items {
		if one.DeletionTimestamp != nil {
			return fmt.Errorf("namespace %s is there: %+v", one.Name, one.Status.Conditions)
		}
	}
	return nil
}

func (s *scene) noObjects() error {
	for _, list := range []client.ObjectList{
		&corev1.PersistentVolumeList{}, &storagev1.VolumeAttachmentList{}, &stowagev1alpha1.LocalVolumeList{},
	} {
		if err := s.bed.Client.List(s.Ctx, list); err != nil {
			return err
		}
		if count := meta.LenList(list); count > 0 {
			return fmt.Errorf("%T has %d", list, count)
		}
	}
	return nil
}

func (s *scene) noDisks(cloud *cloud) error {
	all, err := cloud.Disks.List(project, zone).Context(s.Ctx).Do()
	if err == nil && len(all.Items) > 0 {
		err = fmt.Errorf("there are %d disks, such as %s", len(all.Items), all.Items[0].Name)
	}
	return err
}

// emptyShare says whether the server has nothing but Stowage's own folder.
func (s *scene) emptyShare() error {
	entries, err := os.ReadDir(s.bed.share.Share())
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".stowage") {
			err = errors.Join(err, fmt.Errorf("%s is there", entry.Name()))
		}
	}
	return err
}

// unmounted says whether a node has nothing mounted for a CSI driver.
func unmounted(node *kubenode.Node) error {
	var mounts []string
	err := node.Host.Ask("Files.Mounts", "/var/lib/kubelet", &mounts)
	mounts = slices.DeleteFunc(mounts, func(mount string) bool {
		return !strings.Contains(mount, "kubernetes.io~csi") && !strings.Contains(mount, "kubernetes.io/csi")
	})
	if err == nil && len(mounts) > 0 {
		err = fmt.Errorf("%s has %q", node.Name, mounts)
	}
	return err
}
