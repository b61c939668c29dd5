package main

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/test/fixture"
)

const attachFinalizer = "external-attacher/gce-stowage-dev"

// bareFleet sends the writes of one phase without a thought: for each volume that is
// attached, the attachment and its status; for each that is detached, the attachment's
// deletion and the end of its finalizer; and for each node, once, what is attached.
type bareFleet struct {
	fleet
	client client.Client
}

// runBareAttach is the bare client of one phase. It stays until it is told to end.
func runBareAttach(ctx context.Context, kubeconfig string, step phase, numbers ...string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading how to reach the API server: %w", err)
	}
	config.QPS = noClientLimit
	b := bareFleet{}
	for i, number := range []*int{&b.nodes, &b.perNode} {
		if *number, err = strconv.Atoi(numbers[i]); err != nil {
			return fmt.Errorf("reading the size of the fleet: %w", err)
		}
	}
	if b.client, err = newClient(config); err != nil {
		return err
	}
	if err := watchAttachments(ctx, config, b.client); err != nil {
		return err
	}
	switch step {
	case attaching:
		err = b.attachAll(ctx, 0)
	case moving:
		if err = b.detachAll(ctx, 0); err == nil {
			err = b.attachAll(ctx, 1)
		}
	case detaching:
		err = b.detachAll(ctx, 1)
	}
	if err == nil {
		<-ctx.Done()
	}
	return err
}

// watchAttachments has the API server do for this client what it does for the manager.
func watchAttachments(ctx context.Context, config *rest.Config, of client.Client) error {
	watched, err := cache.New(config, cache.Options{Scheme: of.Scheme()})
	if err != nil {
		return fmt.Errorf("making a cache: %w", err)
	}
	for _, kind := range []client.Object{&storagev1.VolumeAttachment{}, &corev1.Node{}} {
		if _, err := watched.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watching %T: %w", kind, err)
		}
	}
	go func() { _ = watched.Start(ctx) }() // it only ends with ctx
	if !watched.WaitForCacheSync(ctx) {
		return fmt.Errorf("waiting for the cache: %w", ctx.Err())
	}
	return nil
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
		return b.tell(ctx, b.nodeOf(group, turn), b.attachedTo(group))
	})
}

func (b bareFleet) attachTo(ctx context.Context, i int, node string) error {
	attachment := attachmentOf(i, node)
	if err := b.client.Create(ctx, attachment); err != nil {
		return err
	}
	return patchStatus(ctx, b.client, attachment, types.MergePatchType, object{"status": object{
		"attached":           true,
		"attachmentMetadata": object{backend.DeviceMetadata: volumeName(i), backend.SerialMetadata: volumeName(i)},
	}})
}

func (b bareFleet) detachAll(ctx context.Context, turn int) error {
	err := inParallel(ctx, b.nodes, func(group int) error { return b.tell(ctx, b.nodeOf(group, turn), nil) })
	if err != nil {
		return err
	}
	return inParallel(ctx, b.volumes(), func(i int) error {
		attachment := attachmentOf(i, b.nodeOf(b.group(i), turn))
		if err := b.client.Delete(ctx, attachment); err != nil {
			return err
		}
		return patch(ctx, b.client, attachment, object{"metadata": object{"finalizers": nil}})
	})
}

// tell writes what is attached into a node's status.
func (b bareFleet) tell(ctx context.Context, node string, attached []corev1.AttachedVolume) error {
	return patchStatus(ctx, b.client, fixture.Node(node), types.MergePatchType,
		object{"status": object{"volumesAttached": attached}})
}

func (b bareFleet) attachedTo(group int) []corev1.AttachedVolume {
	attached := make([]corev1.AttachedVolume, b.perNode)
	for i := range attached {
		attached[i].Name = uniqueName(group*b.perNode + i)
	}
	return attached
}

func uniqueName(volume int) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName("kubernetes.io/csi/" + stowagev1alpha1.GCEDriver + "^" + volumeName(volume))
}

func attachmentOf(volume int, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: attachmentName(volume, node), Finalizers: []string{attachFinalizer}},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: stowagev1alpha1.GCEDriver,
			NodeName: node,
			Source:   storagev1.VolumeAttachmentSource{PersistentVolumeName: new(volumeName(volume))},
		},
	}
}

func attachmentName(volume int, node string) string {
	return attach.AttachmentName(stowagev1alpha1.GCEDriver, volumeName(volume), node)
}
