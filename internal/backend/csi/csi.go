// Package csi is the backend with storage of any CSI driver, by the driver's Controller service.
//
// A volume's name at the driver is the id of the request, and its id is what CreateVolume answered.
// CSI keeps no owner beside a volume, so this backend lists none and finds no orphans: the record of
// a volume is its PersistentVolume. Until that exists, the record is the request itself, which the
// caller repeats with the same name and parameters.
//
// Answers of a driver are checked and bounded: a driver is another program, which may be of another
// version or wrong. Secrets and parameters never appear in errors.
package csi

import (
	"context"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/csi/calling"
	"github.com/stowage-dev/stowage/internal/backend/csi/measured"
)

// Kind makes CSI backends. All methods can be called concurrently.
type Kind struct {
	cluster     Cluster
	calls       *measured.Calls
	connections *connections
}

// NewKind makes the kind for a cluster.
func NewKind(cluster Cluster, calls *measured.Calls) *Kind {
	return &Kind{cluster: cluster, calls: calls, connections: newConnections(calls)}
}

// Type is CSI.
func (*Kind) Type() stowagev1alpha1.BackendType { return stowagev1alpha1.CSIType }

// Open makes the backend of one StorageBackend object.
func (k *Kind) Open(object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	spec, err := settingsFrom(object)
	if err != nil {
		return nil, err
	}
	return &csiBackend{kind: k, spec: spec}, nil
}

// Forget implements backend.Forgetter: it ends the connection of a StorageBackend, which has the driver's
// name.
func (k *Kind) Forget(name string) {
	k.connections.forget(name)
	k.calls.Forget(name)
}

type csiBackend struct {
	kind *Kind
	spec settings
}

// Capabilities are all that Kubernetes has: the driver says of each request what it can't do.
func (b *csiBackend) Capabilities() backend.Capabilities {
	return backend.Capabilities{
		AccessModes: []corev1.PersistentVolumeAccessMode{
			corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod,
		},
		VolumeModes: []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock},
		Clones:      true,
		Restores:    true,
	}
}

// secret reads a Secret for a call, as the driver gets it; nil where there is none.
func (b *csiBackend) secret(ctx context.Context, reference *stowagev1alpha1.SecretReference) (map[string]string, error) {
	if reference == nil {
		return nil, nil
	}
	data, err := b.kind.cluster.Secret(ctx, reference.Name)
	if err != nil {
		return nil, err
	}
	values := make(map[string]string, len(data))
	for key, value := range data {
		values[key] = string(value)
	}
	return values, nil
}

// driver connects to the driver, and checks that it is the one of the spec.
func (b *csiBackend) driver(ctx context.Context) (csispec.ControllerClient, abilities, error) {
	c, err := b.kind.connections.to(ctx, b.kind.cluster, b.spec)
	if err != nil {
		return nil, abilities{}, err
	}
	can, err := c.abilities(ctx, b.spec)
	return csispec.NewControllerClient(c.grpc), can, err
}

// checkMakes returns an error where the driver makes no volumes.
func (b *csiBackend) checkMakes(can abilities) error {
	if !can.has(csispec.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME) {
		return backend.Invalid.Errorf("driver %s can't make volumes: it doesn't claim CREATE_DELETE_VOLUME", b.spec.Driver)
	}
	return nil
}

// Probe implements backend.Prober. It asks for the driver's name and abilities again.
func (b *csiBackend) Probe(ctx context.Context) error {
	c, err := b.kind.connections.to(ctx, b.kind.cluster, b.spec)
	if err != nil {
		return err
	}
	c.forget()
	can, err := c.abilities(ctx, b.spec)
	if err != nil {
		return err
	}
	if err := b.checkMakes(can); err != nil {
		return err
	}
	for _, secret := range b.spec.secrets() {
		if _, err := b.secret(ctx, secret); err != nil {
			return err
		}
	}
	answer, err := calling.Call(ctx, b.spec.driver, csispec.NewIdentityClient(c.grpc).Probe, &csispec.ProbeRequest{})
	switch {
	case err != nil:
		return b.spec.driver.Unanswered("Probe", err)
	case answer.GetReady() != nil && !answer.GetReady().GetValue():
		return backend.Unavailable.Errorf("driver %s isn't ready yet: its log says why", b.spec.Driver)
	}
	return nil
}
