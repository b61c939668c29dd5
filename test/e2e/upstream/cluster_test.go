package upstream_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	harness "github.com/stowage-dev/stowage/test/harness/cluster"
	"github.com/stowage-dev/stowage/test/harness/kube"
)

// serveSnapshots installs what Kubernetes' own specs of snapshots need, and Stowage doesn't bring: the CRDs and, where Stowage
// doesn't bind VolumeSnapshots itself, the stock controller.
func serveSnapshots(ctx context.Context) error {
	if err := harness.InstallSnapshots(ctx, cluster.Config); err != nil {
		return err
	}
	if cluster.Overlay == kube.InsteadOfIt {
		return nil
	}
	controller, err := harness.NewSnapshotController(cluster.Kubeconfig(), filepath.Join(cluster.Folder.Logs(), "snapshot-controller.log"))
	if err != nil {
		return err
	}
	DeferCleanup(controller.Kill)
	return controller.StartReady(ctx)
}

// apart is the taint of nodes on which a suite's pods are not to run.
const apart = "test.stowage.dev/apart"

// nothingIsLeft is an error while there is a volume, or what volumes consist of.
func nothingIsLeft(ctx context.Context) error {
	var left []string
	for _, list := range []client.ObjectList{
		&corev1.PersistentVolumeList{}, &storagev1.VolumeAttachmentList{}, &stowagev1alpha1.NodeVolumeList{},
		&snapshotv1.VolumeSnapshotContentList{},
	} {
		if err := cluster.Client.List(ctx, list); err != nil {
			return err
		}
		err := meta.EachListItem(list, func(object runtime.Object) error {
			left = append(left, fmt.Sprintf("%T %s", object, object.(client.Object).GetName()))
			return nil
		})
		if err != nil {
			return err
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("there are %v", left)
	}
	return nil
}

// onlyOn has pods run on these nodes alone; on all if there are none.
func onlyOn(ctx context.Context, names []string) error {
	for _, node := range cluster.Nodes {
		object := &corev1.Node{}
		if err := cluster.Client.Get(ctx, client.ObjectKey{Name: node.Name}, object); err != nil {
			return err
		}
		before := object.DeepCopy()
		object.Spec.Taints = taints(object.Spec.Taints, len(names) == 0 || slices.Contains(names, node.Name))
		if err := cluster.Client.Patch(ctx, object, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("tainting %s: %w", node.Name, err)
		}
	}
	return nil
}

// taints is a node's, with or without that which keeps a suite's pods off it.
func taints(all []corev1.Taint, allowed bool) (kept []corev1.Taint) {
	for _, taint := range all {
		if taint.Key != apart {
			kept = append(kept, taint)
		}
	}
	if !allowed {
		kept = append(kept, corev1.Taint{Key: apart, Effect: corev1.TaintEffectNoSchedule})
	}
	return kept
}
