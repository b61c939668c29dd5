package csi

import (
	"reflect"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

func TestAStageRequestBecomesAVolume(t *testing.T) {
	driver := &plainDriver{}
	w := startWorld(t, driver, worldOptions{})
	_, err := w.node.NodeStageVolume(t.Context(), stageRequest(func(r *csispec.NodeStageVolumeRequest) {
		r.PublishContext = map[string]string{"device": "google-a", "serial": "a"}
		r.VolumeContext = map[string]string{"server": "s", podNameKey: "p", ephemeralKey: "false"}
		r.Secrets = map[string]string{"key": "hidden"}
	}))
	if err != nil {
		t.Fatal(err)
	}
	mode := corev1.PersistentVolumeFilesystem
	want := volumes.Spec{
		PersistentVolume: &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "v1"},
			Spec: corev1.PersistentVolumeSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeMode: &mode, MountOptions: []string{"noatime"},
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
					Driver: driverName, VolumeHandle: "v1", FSType: "ext4", VolumeAttributes: map[string]string{"server": "s"},
				}},
			},
		},
		Attachment: &volumes.Attachment{Device: "google-a", Serial: "a"},
	}
	if got := driver.asked(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got.PersistentVolume, want.PersistentVolume)
	}
	driver.wantCalls(t, "stage /s/v1")
}

func TestADeviceIsOne(t *testing.T) {
	driver := &plainDriver{}
	w := startWorld(t, driver, worldOptions{})
	_, err := w.node.NodePublishVolume(t.Context(), publishRequest(func(r *csispec.NodePublishVolumeRequest) { r.VolumeCapability = asDevice(multiWriter) }))
	if spec := driver.asked(); err != nil || !spec.IsBlock() || spec.Attachment != nil {
		t.Errorf("got %+v, %v", spec, err)
	}
}

func TestAccessIsWhatModeAndFlagAllow(t *testing.T) {
	modes := map[csispec.VolumeCapability_AccessMode_Mode]struct {
		mode   corev1.PersistentVolumeAccessMode
		access mount.Access
	}{
		csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER:        {corev1.ReadWriteOnce, mount.ReadWrite},
		csispec.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:  {corev1.ReadWriteOnce, mount.ReadWrite},
		csispec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER: {corev1.ReadWriteOncePod, mount.ReadWrite},
		csispec.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:   {corev1.ReadOnlyMany, mount.ReadOnly},
		csispec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:    {corev1.ReadOnlyMany, mount.ReadOnly},
		csispec.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER:  {corev1.ReadWriteMany, mount.ReadWrite},
		csispec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:   {corev1.ReadWriteMany, mount.ReadWrite},
	}
	driver := &plainDriver{}
	w := startWorld(t, driver, worldOptions{})
	for asked, want := range modes {
		for _, readOnly := range []bool{false, true} {
			_, err := w.node.NodePublishVolume(t.Context(), publishRequest(func(r *csispec.NodePublishVolumeRequest) {
				r.VolumeCapability, r.Readonly = mounted(asked), readOnly
			}))
			access := want.access
			if readOnly {
				access = mount.ReadOnly
			}
			spec := driver.asked()
			if err != nil || spec.Access != access || spec.PersistentVolume.Spec.AccessModes[0] != want.mode {
				t.Errorf("%s, read-only %v: got %v, %v, %v", asked, readOnly, spec.Access, spec.PersistentVolume.Spec.AccessModes, err)
			}
		}
		_, err := w.node.NodeStageVolume(t.Context(), stageRequest(func(r *csispec.NodeStageVolumeRequest) { r.VolumeCapability = mounted(asked) }))
		if err != nil || driver.asked().Access != want.access {
			t.Errorf("%s, staged: got %v, %v", asked, driver.asked().Access, err)
		}
	}
}

func TestAPodsOwnVolumeIsThePods(t *testing.T) {
	driver := &ableDriver{}
	w := startWorld(t, driver, worldOptions{})
	_, err := w.node.NodePublishVolume(t.Context(), publishRequest(func(r *csispec.NodePublishVolumeRequest) {
		r.VolumeId, r.StagingTargetPath, r.Readonly = inlineID, "", true
		r.VolumeContext = map[string]string{ephemeralKey: "true", podNameKey: "p", podSpaceKey: "shop", podUIDKey: "u1", "backend": "b"}
	}))
	if err != nil {
		t.Fatal(err)
	}
	spec := driver.asked()
	pod, source := spec.Pod, spec.Volume.CSI
	if pod.Name != "p" || pod.Namespace != "shop" || pod.UID != "u1" || spec.PersistentVolume != nil || spec.Access != mount.ReadOnly {
		t.Errorf("got %+v", spec)
	}
	if source.Driver != driverName || !*source.ReadOnly || *source.FSType != "ext4" || !reflect.DeepEqual(source.VolumeAttributes, map[string]string{"backend": "b"}) {
		t.Errorf("got %+v", source)
	}
	driver.wantCalls(t, "publish inline csi-inline /t/v1")
}
