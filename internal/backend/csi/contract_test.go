package csi_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
)

// asReconcilers is a backend as reconcilers call it: with the volume object of an attachment. CSI keeps
// no owner, so which claim's volume is copied is checked by the reconciler, and copies have tests of
// their own.
type asReconcilers struct{ backend.Backend }

func (b asReconcilers) Capabilities() backend.Capabilities {
	without := b.Backend.Capabilities()
	without.Clones = false
	return without
}

func (b asReconcilers) Attach(ctx context.Context, request backend.AttachRequest) (backend.Attachment, error) {
	request.Volume = volumeWith(request.ID)
	return b.Backend.(backend.Attacher).Attach(ctx, request)
}

func (b asReconcilers) Detach(ctx context.Context, id string, node backend.NodeIdentity) error {
	return b.Backend.(backend.Attacher).Detach(ctx, id, node)
}

func (b asReconcilers) IsAttached(ctx context.Context, id string, node backend.NodeIdentity) (bool, error) {
	return b.Backend.(backend.Attacher).IsAttached(ctx, id, node)
}

func (b asReconcilers) Expand(ctx context.Context, request backend.ExpandRequest) (backend.Expansion, error) {
	return backend.Expand(ctx, b.Backend, request)
}

func volumeWith(handle string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv"},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: driverName, VolumeHandle: handle, FSType: "ext4", VolumeAttributes: map[string]string{"array": "a"},
			}},
		},
	}
}

func TestTheContract(t *testing.T) {
	backendtest.Contract(t, func(t *testing.T) (backend.Backend, func(string) bool) {
		w := newWorld(t)
		return asReconcilers{w.Backend}, w.has
	})
}

func TestTheContractOfAttaching(t *testing.T) {
	backendtest.AttachContract(t, func(t *testing.T) backendtest.Machines {
		w := newWorld(t)
		return backendtest.Machines{
			Backend: asReconcilers{w.Backend},
			Nodes:   [2]backend.NodeIdentity{{Name: "a", DriverID: "id-a"}, {Name: "b", DriverID: "id-b"}},
			Absent:  backend.NodeIdentity{Name: "absent"},
		}
	})
}
