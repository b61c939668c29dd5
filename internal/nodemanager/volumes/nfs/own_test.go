package nfs

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/nfs"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// ofPod is a volume that a pod names itself, and ofObject one of a volume object.
func ofPod(path string, readOnly bool) volumes.Spec {
	source := &corev1.NFSVolumeSource{Server: "nfs", Path: path, ReadOnly: readOnly}
	return volumes.Spec{Volume: corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{NFS: source}}}
}

func ofObject(path string, options ...string) volumes.Spec {
	volume := &corev1.PersistentVolume{}
	volume.Name, volume.Spec.NFS, volume.Spec.MountOptions = "pv", ofPod(path, false).Volume.NFS, options
	return volumes.Spec{PersistentVolume: volume}
}

//proves:nfs/pod nfs/claim
func TestPodsAndVolumeObjectsThatNameOneShareHaveOneMountOfIt(t *testing.T) {
	plugin, k, folder := newPlugin(t)
	pods := map[string]volumes.Spec{
		"pod-1": ofPod("/srv/a", false), "pod-2": ofPod("/srv/a/", true), "pod-3": ofObject("/srv/a"),
	}
	for name, spec := range pods {
		publish(t, plugin, spec, filepath.Join(folder, name))
	}
	if len(k.Tried) != 1 || len(k.Mounts()) != 1+len(pods) {
		t.Errorf("mounted: %+v after %v", k.Mounts(), k.Tried)
	}
	if point, _ := k.Mounts().At(filepath.Join(folder, "pod-2", mountDir)); point.Access != mount.ReadOnly {
		t.Errorf("the pod that only reads has %+v", point)
	}
	if point, _ := k.Mounts().At(filepath.Join(folder, "pod-1", mountDir)); point.Access != mount.ReadWrite {
		t.Errorf("the pod that writes has %+v", point)
	}
	for name := range pods {
		if err := plugin.Unpublish(t.Context(), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	mustBeClean(t, k, folder)
}

func TestAPodsShareIsMountedApartFromOtherDirectoriesAndOptions(t *testing.T) {
	plugin, k, folder := newPlugin(t)
	publish(t, plugin, ofPod("/srv/a", false), filepath.Join(folder, "pod-1"))
	publish(t, plugin, ofPod("/srv/a/b", false), filepath.Join(folder, "pod-2"))
	publish(t, plugin, ofObject("/srv/a", "soft"), filepath.Join(folder, "pod-3"))
	if len(k.Tried) != 3 {
		t.Errorf("mounted: %+v after %v", k.Mounts(), k.Tried)
	}
}

//proves:nfs/pod
func TestAnInvalidShareIsRefused(t *testing.T) {
	spec := ofPod("/srv/../etc", false)
	if _, err := nfs.ShareOf(spec); err == nil || !strings.Contains(err.Error(), "without '..'") {
		t.Errorf("a path that leads out: %v", err)
	}
	spec = ofPod("/srv", false)
	spec.Volume.NFS.Server = "nfs,addr=192.0.2.9"
	if _, err := nfs.ShareOf(spec); err == nil || !strings.Contains(err.Error(), "no host name or IP address") {
		t.Errorf("a server with an option: %v", err)
	}
}
