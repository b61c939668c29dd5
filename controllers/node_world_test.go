package controllers

import (
	"context"
	"errors"
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/node"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// foreignDriver is a driver with an attacher of its own, which the specs play.
const foreignDriver = "disks.example.com"

// nodeWorld is a world with the reconciler of nodes. The specs play the kubelets.
type nodeWorld struct {
	*world
	nodes *node.Reconciler
}

func newNodeWorld() *nodeWorld {
	GinkgoHelper()
	w := &nodeWorld{world: newWorld(reconciler.ClusterScope)}
	w.restart()
	return w
}

func (w *nodeWorld) restart() {
	w.world.restart()
	w.nodes = node.New(w.dependencies(w.views.nodes))
}

// anotherThatSees is the reconciler of another manager, with another cache.
func (w *nodeWorld) anotherThatSees(cached client.Client) *node.Reconciler {
	return node.New(w.dependencies(newNodesView(w.world, cached)))
}

// reconcile runs one pass over a node.
func (w *nodeWorld) reconcile(node string) error {
	_, err := w.nodes.Reconcile(w.logging(), wake.RequestNamed(node))
	return err
}

// settle runs all reconcilers, and the drivers of others, until nothing changes any more.
func (w *nodeWorld) settle() {
	GinkgoHelper()
	w.settleBy(w.round)
}

func (w *nodeWorld) round() error {
	failures := []error{w.world.round()}
	for _, name := range w.nodeNames() {
		failures = append(failures, w.reconcile(name))
	}
	w.attachForeign()
	return errors.Join(failures...)
}

// nodeNames are the names of all nodes, including those that only attachments name.
func (w *nodeWorld) nodeNames() []string {
	names := map[string]bool{}
	for _, object := range w.all(&corev1.NodeList{}) {
		names[object.GetName()] = true
	}
	for _, object := range w.all(&storagev1.VolumeAttachmentList{}) {
		names[object.(*storagev1.VolumeAttachment).Spec.NodeName] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// attachForeign attaches the volumes of foreign drivers.
func (w *nodeWorld) attachForeign() {
	for _, object := range w.all(&storagev1.VolumeAttachmentList{}) {
		attachment := object.(*storagev1.VolumeAttachment)
		if attachment.Spec.Attacher == foreignDriver && !attachment.Status.Attached && attachment.DeletionTimestamp.IsZero() {
			attachment.Status.Attached = true
			Expect(w.direct.Status().Update(context.Background(), attachment)).To(Succeed())
			w.written++
		}
	}
}

// managedNode is a node with volumes that the manager attaches.
func managedNode(name string) *corev1.Node {
	node := machine(name)
	node.Annotations = map[string]string{attach.ManagedAnnotation: "true"}
	return node
}

// uses has a kubelet report what it uses.
func (w *nodeWorld) uses(node *corev1.Node, volumes ...corev1.UniqueVolumeName) {
	GinkgoHelper()
	w.updateStatus(node, func(status *corev1.NodeStatus) { status.VolumesInUse = volumes })
}

func (w *nodeWorld) updateStatus(node *corev1.Node, change func(*corev1.NodeStatus)) {
	GinkgoHelper()
	w.get(node)
	change(&node.Status)
	Expect(w.direct.Status().Update(context.Background(), node)).To(Succeed())
}

// becomesNotReady is what Kubernetes writes for a node without heartbeats.
func (w *nodeWorld) becomesNotReady(node *corev1.Node) {
	GinkgoHelper()
	w.updateStatus(node, func(status *corev1.NodeStatus) {
		status.Conditions[0].Status = corev1.ConditionUnknown
		status.Conditions[0].LastTransitionTime = metav1.NewTime(w.clock.Now())
	})
}

// volumesAttached are the names in volumesAttached of a node.
func (w *nodeWorld) volumesAttached(node *corev1.Node) []string {
	GinkgoHelper()
	w.get(node)
	return index.VolumesAttachedTo(node)
}

func (w *nodeWorld) attachmentsOf(node string) []*storagev1.VolumeAttachment {
	var found []*storagev1.VolumeAttachment
	for _, object := range w.all(&storagev1.VolumeAttachmentList{}) {
		if attachment := object.(*storagev1.VolumeAttachment); attachment.Spec.NodeName == node {
			found = append(found, attachment)
		}
	}
	return found
}

// disk is a volume of a foreign driver, bound to a claim that is named after it.
func (w *nodeWorld) disk(name string, options ...func(*corev1.PersistentVolume)) corev1.UniqueVolumeName {
	GinkgoHelper()
	pv := Volume(name, append([]func(*corev1.PersistentVolume){func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: foreignDriver, VolumeHandle: "handle-of-" + name},
		}
	}, ReservedTo(name)}, options...)...)
	w.create(pv, Claim(ClaimNamed(name), AskingFor(name), AskingModes(pv.Spec.AccessModes...)))
	w.world.settle()
	w.get(pv)
	volume, _, err := attach.OfPersistentVolume(pv)
	Expect(err).NotTo(HaveOccurred())
	return volume.Name
}

// running is a cluster with a node, a pod and its volume.
func (w *nodeWorld) running(volume string) (*corev1.Node, *corev1.Pod, corev1.UniqueVolumeName) {
	GinkgoHelper()
	node, pod := managedNode("node-1"), Pod("user", "node-1", volume)
	w.create(node)
	name := w.disk(volume)
	w.create(pod)
	w.settle()
	Expect(w.volumesAttached(node)).To(ConsistOf(string(name)))
	w.uses(node, name)
	w.world.newEvents()
	return node, pod, name
}

// newNodesView is the view of a reconciler of nodes with a cache.
func newNodesView(w *world, cached client.Client) *view {
	return &view{cached, liveView{nodeIndexes{w.reads}}}
}

// nodeIndexes answers the indexes that the reconciler of nodes uses, from what it reads.
type nodeIndexes struct{ client.Client }

func (c nodeIndexes) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	applied := (&client.ListOptions{}).ApplyOptions(options)
	if applied.FieldSelector == nil {
		return c.Client.List(ctx, list, options...)
	}
	field := applied.FieldSelector.Requirements()[0]
	var values client.IndexerFunc
	switch list.(type) {
	case *corev1.PodList:
		values = map[string]client.IndexerFunc{index.PodsByNode: index.NodeOfIndexedPod, index.PodsByVolume: index.InlineVolumesOf}[field.Field]
	case *corev1.NodeList:
		values = index.VolumesAttachedTo
	case *storagev1.VolumeAttachmentList:
		values = map[string]client.IndexerFunc{index.AttachmentsByStorage: index.AttachmentStorage, index.AttachmentsByNode: index.AttachmentNode}[field.Field]
	}
	if values == nil {
		return c.Client.List(ctx, list, options...)
	}
	if err := c.Client.List(ctx, list); err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	return meta.SetList(list, slices.DeleteFunc(items, func(item runtime.Object) bool {
		return !slices.Contains(values(item.(client.Object)), field.Value)
	}))
}
