package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/kube"
	"github.com/stowage-dev/stowage/test/harness/kubenode"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// left: once all pods and claims have gone, nothing of their volumes is anywhere.
func left(n *namespace) {
	if err := n.noFailures(); err != nil {
		Fail(err.Error())
	}
	n.Soon("no namespace of a spec is left", n.noNamespaces)
	n.Soon("no volume, local volume nor attachment is left", n.noObjects)
	scenario.Step("no disk in a cloud", func() error { return errors.Join(n.noDisks(n.cluster.Cloud), n.noDisks(n.cluster.MachinesCloud)) })
	scenario.Step("no directory on the NFS server", n.emptyShare)
	n.Soon("no mount on a node", func() error { return n.cluster.Each(n.unmounted) })
}

// noFailures skips the spec where another one has failed: that has kept its namespace.
func (n *namespace) noFailures() error {
	all := &corev1.NamespaceList{}
	if err := n.cluster.Client.List(n.ctx, all, client.HasLabels{specLabel}); err != nil {
		return err
	}
	for _, one := range all.Items {
		if one.Name != n.name && one.DeletionTimestamp == nil {
			Skip(one.Name + " has failed, and what it made stays")
		}
	}
	return nil
}

func (n *namespace) noNamespaces() error {
	all := &corev1.NamespaceList{}
	if err := n.cluster.Client.List(n.ctx, all); err != nil {
		return err
	}
	for _, one := range all.Items {
		if one.DeletionTimestamp != nil {
			return fmt.Errorf("namespace %s is there: %+v", one.Name, one.Status.Conditions)
		}
	}
	return nil
}

func (n *namespace) noObjects() error {
	for _, list := range []client.ObjectList{
		&corev1.PersistentVolumeList{}, &storagev1.VolumeAttachmentList{}, &stowagev1alpha1.NodeVolumeList{},
	} {
		if err := n.cluster.Client.List(n.ctx, list); err != nil {
			return err
		}
		if count := meta.LenList(list); count > 0 {
			return fmt.Errorf("%T has %d", list, count)
		}
	}
	return nil
}

func (n *namespace) noDisks(cloud *kube.Cloud) error {
	all, err := cloud.Disks.List(kube.Project, kube.Zone).Context(n.ctx).Do()
	if err == nil && len(all.Items) > 0 {
		err = fmt.Errorf("there are %d disks, such as %s", len(all.Items), all.Items[0].Name)
	}
	return err
}

// emptyShare reports whether the server has nothing but Stowage's own folder.
func (n *namespace) emptyShare() error {
	entries, err := os.ReadDir(n.cluster.Share.Share())
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".stowage") {
			err = errors.Join(err, fmt.Errorf("%s is there", entry.Name()))
		}
	}
	return err
}

// unmounted reports whether a node has nothing mounted for a CSI driver.
func (n *namespace) unmounted(node *kubenode.Node) error {
	var mounts []string
	err := node.Host.Call(n.ctx, "Files.Mounts", "/var/lib/kubelet", &mounts)
	mounts = slices.DeleteFunc(mounts, func(mount string) bool {
		return !strings.Contains(mount, "kubernetes.io~csi") && !strings.Contains(mount, "kubernetes.io/csi")
	})
	if err == nil && len(mounts) > 0 {
		err = fmt.Errorf("%s has %q", node.Name, mounts)
	}
	return err
}
