package csi_test

import (
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/csi/wire"
)

func TestADriverKnowsHowAVolumeIsUsedThatIsToGrow(t *testing.T) {
	device := func(pv *corev1.PersistentVolume) { pv.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }
	for name, test := range map[string]struct {
		change    func(*corev1.PersistentVolume)
		abilities []ability
		want      *csispec.VolumeCapability
	}{
		"a file system": {
			change: func(pv *corev1.PersistentVolume) { pv.Spec.MountOptions = []string{"noatime"} },
			want:   wire.Capability(csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, corev1.PersistentVolumeFilesystem, "ext4", []string{"noatime"}),
		},
		"a device": {
			change: device,
			want:   wire.Capability(csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, corev1.PersistentVolumeBlock, "", nil),
		},
		"a driver that distinguishes writers": {
			change: device, abilities: []ability{csispec.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER},
			want: wire.Capability(csispec.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER, corev1.PersistentVolumeBlock, "", nil),
		},
		"modes for which CSI has no name": {change: func(pv *corev1.PersistentVolume) {
			pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.abilities = append(w.abilities, test.abilities...)
			made, err := w.Provision(t.Context(), backendtest.Request("1"))
			if err != nil {
				t.Fatal(err)
			}
			pv := volumeWith(made.Handle)
			test.change(pv)
			if _, err := backend.Expand(t.Context(), w.Backend, backend.ExpandRequest{ID: made.Handle, Volume: pv, Capacity: resource.MustParse("5Mi")}); err != nil {
				t.Fatal(err)
			}
			if got := did[*csispec.ControllerExpandVolumeRequest](w.driver)[0].GetVolumeCapability(); !proto.Equal(got, test.want) {
				t.Errorf("the driver got %v, not %v", got, test.want)
			}
		})
	}
}
