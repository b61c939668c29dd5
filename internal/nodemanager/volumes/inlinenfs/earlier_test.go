package inlinenfs_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// publishEarlier mounts a pod's folder as an agent of the previous layout did: package nfs mounted
// it for the node, and bound it for the pod.
func (n *node) publishEarlier(ctx context.Context, pod string) error {
	// The record and the folder are as they were.
	if err := n.publish(ctx, pod); err != nil {
		return err
	}
	records, err := filepath.Glob(filepath.Join(n.dir, "staged", "*"))
	if err := errors.Join(err, mount.UnmountBelow(mount.Kernel{}, n.at(pod))); err != nil {
		return err
	}
	for _, record := range records {
		if err := os.Remove(record); err != nil {
			return err
		}
	}
	volume := &corev1.PersistentVolume{}
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: stowagev1alpha1.NFSDriver, VolumeAttributes: map[string]string{
		stowagev1alpha1.ServerAttribute:       serverName,
		stowagev1alpha1.PathAttribute:         filepath.Join(sharePath, ".stowage-inline", pod+"-scratch"),
		stowagev1alpha1.MountOptionsAttribute: "nfsvers=4.1",
	}}
	return n.shares.Publish(ctx, volumes.Spec{PersistentVolume: volume}, filepath.Join(n.at(pod), "share"))
}

//proves:inline/crash
func TestAFolderOfTheLayoutBeforeStaysWithItsPodAndGoesWithIt(t *testing.T) {
	n := newNode(t)
	if err := n.publishEarlier(t.Context(), "pod-1"); err != nil {
		t.Fatal(err)
	}
	n.write(t, "pod-1", "hello")
	n.restart(t, n.servers)
	n.mustPublish(t, "pod-2")
	table, err := mount.Kernel{}.Table()
	if there, err2 := n.plugin.IsPublished(table, n.spec("pod-1"), n.at("pod-1")); !there || errors.Join(err, err2) != nil {
		t.Errorf("got %v, %v, %v", there, err, err2)
	}
	if got := n.reads(t, "pod-1"); got != "hello" {
		t.Errorf("the server has %q", got)
	}
	n.mustUnpublish(t, "pod-1")
	n.write(t, "pod-2", "still here")
	n.mustUnpublish(t, "pod-2")
	n.mustBeClean(t)
}

//proves:inline/crash
func TestTheEndOfAFolderOfTheLayoutBeforeThatIsCutOffIsFinished(t *testing.T) {
	prepare := func(n *node) error { return n.publishEarlier(t.Context(), "pod-1") }
	work := func(n *node) error { return n.plugin.Unpublish(t.Context(), n.at("pod-1")) }
	eachCrash(t, prepare, work, func(t *testing.T, n *node) { n.mustUnpublish(t, "pod-1") })
}
