package stock_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/volume"
)

const (
	project = "demo"
	zoneA   = "europe-west3-a"
	zoneB   = "europe-west3-b"

	// renewing is how often nodes renew their leases: kube-controller-manager takes one for
	// dead that didn't for 50 s.
	renewing = 5 * time.Second
)

// nodes are those that the suite plays, with the sizes of their disks.
var nodes = []struct{ name, zone, disk string }{
	{"small", zoneA, "64m"},
	{"large", zoneA, "512m"},
	{"other", zoneB, "64m"},
}

// registerNodes does what kubelets do: they register, themselves and the drivers that
// register with them, and renew leases from then on.
func (s *stowage) registerNodes(ctx context.Context) {
	GinkgoHelper()
	for _, of := range nodes {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: of.name, Annotations: map[string]string{attach.ManagedAnnotation: "true"},
				Labels: map[string]string{
					corev1.LabelHostname: of.name, corev1.LabelOSStable: "linux", corev1.LabelTopologyZone: of.zone,
					corev1.LabelTopologyRegion: "europe-west3", stowagev1alpha1.TopologyNodeLabel: of.name,
				},
			},
			Spec: corev1.NodeSpec{ProviderID: "gce://" + project + "/" + of.zone + "/" + of.name},
		}
		create(ctx, node)
		setReady(ctx, of.name, corev1.ConditionTrue)
		create(ctx, driversOn(node))
	}
	renew(ctx)
	heart, stop := context.WithCancel(context.WithoutCancel(ctx)) // longer than the suite's start
	DeferCleanup(stop)
	go func() {
		for {
			select {
			case <-heart.Done():
				return
			case <-time.After(renewing):
				renew(heart)
			}
		}
	}()
}

// driversOn is what a kubelet says of the drivers that registered with it.
func driversOn(node *corev1.Node) *storagev1.CSINode {
	object := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}
	Expect(controllerutil.SetOwnerReference(node, object, users.Scheme())).To(Succeed())
	object.Spec.Drivers = []storagev1.CSINodeDriver{
		{Name: stowagev1alpha1.LocalDriver, NodeID: node.Name, TopologyKeys: []string{stowagev1alpha1.TopologyNodeLabel}},
		{Name: stowagev1alpha1.NFSDriver, NodeID: node.Name},
		{
			Name: stowagev1alpha1.GCEDriver, NodeID: node.Name, TopologyKeys: []string{corev1.LabelTopologyZone},
			Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(16))},
		},
	}
	return object
}

// renew renews the leases of all nodes. One that fails is renewed the next time.
func renew(ctx context.Context) {
	for _, node := range nodes {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node.name}}
		_, _ = controllerutil.CreateOrUpdate(ctx, users, lease, func() error {
			lease.Spec.HolderIdentity = new(node.name)
			lease.Spec.LeaseDurationSeconds = new(int32(40))
			lease.Spec.RenewTime = new(metav1.NowMicro())
			return nil
		})
	}
}

// setReady says how a node is, as its kubelet does, or as is said of it when it is silent.
func setReady(ctx context.Context, name string, ready corev1.ConditionStatus) {
	GinkgoHelper()
	node := &corev1.Node{}
	Expect(users.Get(ctx, client.ObjectKey{Name: name}, node)).To(Succeed())
	before := node.DeepCopy()
	node.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	node.Status.Allocatable = node.Status.Capacity
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: ready, Reason: "Test", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}
	Expect(users.Status().Patch(ctx, node, client.MergeFrom(before))).To(Succeed())
}

// setInUse makes a node say which volumes it uses, as its kubelet does.
func setInUse(ctx context.Context, name string, volumes ...*corev1.PersistentVolume) {
	GinkgoHelper()
	node := &corev1.Node{}
	Expect(users.Get(ctx, client.ObjectKey{Name: name}, node)).To(Succeed())
	before := node.DeepCopy()
	node.Status.VolumesInUse = nil
	for _, pv := range volumes {
		node.Status.VolumesInUse = append(node.Status.VolumesInUse, volume.UniqueName(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle))
	}
	Expect(users.Status().Patch(ctx, node, client.MergeFrom(before))).To(Succeed())
}
