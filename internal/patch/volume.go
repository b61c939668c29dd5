package patch

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// SetPhase sets a volume's phase and message if they differ. A deleted volume is no error.
func SetPhase(ctx context.Context, writer client.Client, pv *corev1.PersistentVolume, phase corev1.PersistentVolumePhase, why string) error {
	why = message.Cut(why, message.MaxStatus)
	if pv.Status.Phase == phase && pv.Status.Message == why {
		return nil
	}
	err := writer.Status().Patch(ctx, pv, VolumePhase(pv, phase, why))
	return wrap.Error(client.IgnoreNotFound(err), "setting volume %s to %s", pv.Name, phase)
}

// Volume writes the changes of a volume, fenced by the version that the decision was based on.
// Doing is a gerund for the error. A deleted volume is no error.
func Volume(ctx context.Context, writer client.Client, before, pv *corev1.PersistentVolume, doing string) error {
	err := writer.Patch(ctx, pv, Fenced(before))
	return wrap.Error(client.IgnoreNotFound(err), "%s volume %s", doing, pv.Name)
}
