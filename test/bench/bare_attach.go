package main

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/test/harness/fixture"
)

// bareFleet sends the writes of one phase without any logic: for each volume that is
// attached, the attachment and its status; for each that is detached, the attachment's
// deletion and the end of its finalizer; and for each node, once, what is attached.
type bareFleet struct {
	fleet
	client client.Client
}

func runBareAttach(ctx context.Context, kubeconfig string, arguments []string) error {
	kinds := []client.Object{&storagev1.VolumeAttachment{}, &corev1.Node{}}
	return runBare(ctx, kubeconfig, kinds, func(ctx context.Context, client bare) (err error) {
		b := bareFleet{client: client}
		for i, number := range []*int{&b.nodes, &b.perNode} {
			if *number, err = strconv.Atoi(arguments[1+i]); err != nil {
				return fmt.Errorf("reading the size of the fleet: %w", err)
			}
		}
		switch phase(arguments[0]) {
		case attaching:
			return b.attachAll(ctx, 0)
		case detaching:
			return b.detachAll(ctx, 1)
		}
		if err := b.detachAll(ctx, 0); err != nil {
			return err
		}
		return b.attachAll(ctx, 1)
	})
}

func (b bareFleet) attachAll(ctx context.Context, turn int) error {
	left := make([]atomic.Int64, b.nodes)
	for i := range left {
		left[i].Store(int64(b.perNode))
	}
	return inParallel(ctx, b.volumes(), func(i int) error {
		group := b.group(i)
		if err := b.attachTo(ctx, i, b.nodeOf(group, turn)); err != nil {
			return err
		}
		if left[group].Add(-1) > 0 {
			return nil
		}
		return b.setAttached(ctx, b.nodeOf(group, turn), b.attachedTo(group))
	})
}

func (b bareFleet) attachTo(ctx context.Context, i int, node string) error {
	attachment := attachmentOf(i, node)
	attachment.Annotations = map[string]string{
		stowagev1alpha1.AttachmentAnnotation: fmt.Sprintf(`{"backend":%q,"volume":%q}`, class, volumeName(i)),
	}
	if err := b.client.Create(ctx, attachment); err != nil {
		return err
	}
	return b.client.Status().Patch(ctx, attachment, merge{"metadata": object{"uid": attachment.UID}, "status": object{
		"attached": true,
		"attachmentMetadata": object{
			backend.DeviceMetadata: volumeName(i), backend.SerialMetadata: volumeName(i), backend.InstanceMetadata: "fake:///" + node,
		},
	}})
}

func (b bareFleet) detachAll(ctx context.Context, turn int) error {
	err := inParallel(ctx, b.nodes, func(group int) error { return b.setAttached(ctx, b.nodeOf(group, turn), nil) })
	if err != nil {
		return err
	}
	return inParallel(ctx, b.volumes(), func(i int) error {
		attachment := attachmentOf(i, b.nodeOf(b.group(i), turn))
		if err := b.client.Delete(ctx, attachment); err != nil {
			return err
		}
		return b.client.Patch(ctx, attachment, merge{"metadata": object{"finalizers": nil}})
	})
}

func (b bareFleet) setAttached(ctx context.Context, node string, attached []corev1.AttachedVolume) error {
	return b.client.Status().Patch(ctx, fixture.Node(node), merge{"status": object{"volumesAttached": attached}})
}

func (b bareFleet) attachedTo(group int) []corev1.AttachedVolume {
	attached := make([]corev1.AttachedVolume, b.perNode)
	for i := range attached {
		attached[i].Name = uniqueName(group*b.perNode + i)
	}
	return attached
}
