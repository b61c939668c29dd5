package csi_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/csi/wire"
)

// ValidateVolumeCapabilities confirms what is asked of a volume, unless the driver refuses.
func (d *driver) ValidateVolumeCapabilities(
	_ context.Context, request *csispec.ValidateVolumeCapabilitiesRequest,
) (*csispec.ValidateVolumeCapabilitiesResponse, error) {
	switch {
	case d.volumes[request.GetVolumeId()] == nil:
		return nil, status.Error(codes.NotFound, "there is no such volume")
	case d.refuses != "":
		return &csispec.ValidateVolumeCapabilitiesResponse{Message: d.refuses}, nil
	}
	return &csispec.ValidateVolumeCapabilitiesResponse{
		Confirmed: &csispec.ValidateVolumeCapabilitiesResponse_Confirmed{VolumeCapabilities: request.GetVolumeCapabilities()},
	}, nil
}

// staticVolume is a volume of the driver, and a person's object for it.
func staticVolume(t *testing.T, w *world) *corev1.PersistentVolume {
	t.Helper()
	made, err := w.Provision(t.Context(), backendtest.Request("1"))
	if err != nil {
		t.Fatal(err)
	}
	return volumeWith(made.Handle)
}

func TestADriverIsAskedForAllThatAVolumeObjectPromises(t *testing.T) {
	w := newWorld(t)
	pv := staticVolume(t, w)
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteMany}
	pv.Spec.MountOptions = []string{"noatime"}
	if err := backend.Validate(t.Context(), w.Backend, pv); err != nil {
		t.Fatal(err)
	}
	asked := did[*csispec.ValidateVolumeCapabilitiesRequest](w.driver)[0]
	want := &csispec.ValidateVolumeCapabilitiesRequest{VolumeId: pv.Spec.CSI.VolumeHandle, VolumeContext: pv.Spec.CSI.VolumeAttributes}
	for _, mode := range []csispec.VolumeCapability_AccessMode_Mode{
		csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csispec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER,
	} {
		want.VolumeCapabilities = append(want.VolumeCapabilities, wire.Capability(mode, corev1.PersistentVolumeFilesystem, "ext4", []string{"noatime"}))
	}
	if !proto.Equal(asked, want) {
		t.Errorf("it was asked %v, not %v", asked, want)
	}
}

func TestWhatADriverSaysOfAVolumeObject(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*world, *corev1.PersistentVolume)
		kind   backend.ErrorKind
		says   string
	}{
		"it refuses":            {func(w *world, _ *corev1.PersistentVolume) { w.refuses = "no xfs" }, backend.Invalid, "no xfs"},
		"it refuses at length":  {func(w *world, _ *corev1.PersistentVolume) { w.refuses = strings.Repeat("x", 1<<20) }, backend.Invalid, "xxx"},
		"it has no such volume": {func(_ *world, pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeHandle = "typo" }, backend.NotFound, "no such volume"},
		"it knows no such call": {func(w *world, _ *corev1.PersistentVolume) {
			w.before = func(any) error { return status.Error(codes.Unimplemented, "what?") }
		}, "", ""},
		"it can't say now": {func(w *world, _ *corev1.PersistentVolume) {
			w.before = func(any) error { return status.Error(codes.Internal, "oops") }
		}, backend.Unavailable, "oops"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			pv := staticVolume(t, w)
			w.mu.Lock()
			test.change(w, pv)
			w.mu.Unlock()
			err := backend.Validate(t.Context(), w.Backend, pv)
			if test.kind == "" && err != nil || test.kind != "" && !errors.Is(err, test.kind) {
				t.Fatalf("got %v", err)
			}
			if err != nil && (!strings.Contains(err.Error(), test.says) || len(err.Error()) > 1000) {
				t.Errorf("it says %s", err)
			}
		})
	}
}
