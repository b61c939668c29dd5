package csi

import (
	"context"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-dev/stowage/internal/backend"
)

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
	if !can.has(csispec.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME) {
		return backend.Invalid.Errorf("driver %s can't make volumes: it doesn't claim CREATE_DELETE_VOLUME", b.spec.Driver)
	}
	for _, secret := range b.spec.secrets() {
		if _, err := b.secret(ctx, secret); err != nil {
			return err
		}
	}
	answer, err := call(ctx, b.spec, csispec.NewIdentityClient(c.grpc).Probe, &csispec.ProbeRequest{})
	switch {
	case err != nil:
		return b.spec.unanswered("Probe", err)
	case answer.GetReady() != nil && !answer.GetReady().GetValue():
		return backend.Unavailable.Errorf("driver %s isn't ready yet: its log says why", b.spec.Driver)
	}
	return nil
}
