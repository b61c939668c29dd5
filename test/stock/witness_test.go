package stock_test

import (
	"context"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// witness sees whatever happens to the claims, volumes, attachments and nodes that there
// are when it begins, also what is put right again a moment later.
type witness struct {
	before map[types.UID]client.Object

	mu   sync.Mutex
	seen []watch.Event
}

// newWitness begins to look. It ends with the spec.
func newWitness(ctx context.Context) *witness {
	GinkgoHelper()
	w := &witness{before: map[types.UID]client.Object{}}
	for _, list := range []client.ObjectList{
		&corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}, &storagev1.VolumeAttachmentList{}, &corev1.NodeList{},
	} {
		Expect(users.List(ctx, list)).To(Succeed())
		for _, object := range objectsIn(list) {
			w.before[object.GetUID()] = object
		}
		watching, err := users.Watch(context.WithoutCancel(ctx), list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(watching.Stop)
		go w.look(watching)
	}
	return w
}

func objectsIn(list client.ObjectList) []client.Object {
	var objects []client.Object
	switch list := list.(type) {
	case *corev1.PersistentVolumeClaimList:
		objects = pointers[corev1.PersistentVolumeClaim](list.Items)
	case *corev1.PersistentVolumeList:
		objects = pointers[corev1.PersistentVolume](list.Items)
	case *storagev1.VolumeAttachmentList:
		objects = pointers[storagev1.VolumeAttachment](list.Items)
	case *corev1.NodeList:
		objects = pointers[corev1.Node](list.Items)
	}
	return objects
}

func pointers[T any, P interface {
	*T
	client.Object
}](items []T) []client.Object {
	objects := make([]client.Object, len(items))
	for i := range items {
		objects[i] = P(&items[i])
	}
	return objects
}

func (w *witness) look(watching watch.Interface) {
	for event := range watching.ResultChan() {
		w.mu.Lock()
		w.seen = append(w.seen, event)
		w.mu.Unlock()
	}
}

// expectNoChange fails where anything happened to what was there that somebody who uses
// it could notice. Allowed are the conditions of claims that Stowage is documented to
// write, and of nodes all but the volumes that they are told of.
func (w *witness) expectNoChange(g Gomega) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := 0
	for _, event := range w.seen {
		g.Expect(event.Type).NotTo(Equal(watch.Error), "%v", event.Object)
		now := event.Object.(client.Object)
		before, is := w.before[now.GetUID()]
		if !is {
			continue
		}
		known++
		g.Expect(event.Type).To(Equal(watch.Modified), "%T %s", now, now.GetName())
		g.Expect(w.essence(now)).To(BeComparableTo(w.essence(before)), "%T %s", now, now.GetName())
	}
	g.Expect(known).To(BeNumerically(">", 0), "the witness saw nothing: not even the conditions of claims")
}

// essence is what of an object is to stay.
func (w *witness) essence(object client.Object) client.Object {
	object = object.DeepCopyObject().(client.Object)
	object.SetResourceVersion("")
	object.SetManagedFields(nil)
	switch object := object.(type) {
	case *corev1.PersistentVolumeClaim:
		object.Status.Conditions = w.conditions(object)
	case *corev1.Node:
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: object.Name, UID: object.UID},
			Status:     corev1.NodeStatus{VolumesAttached: w.toldBefore(object)},
		}
	}
	return object
}

// conditions are those that are to stay. Whether a claim is unused, and since when, stays
// whoever says it, in what words ever.
func (w *witness) conditions(claim *corev1.PersistentVolumeClaim) []corev1.PersistentVolumeClaimCondition {
	var kept []corev1.PersistentVolumeClaimCondition
	for _, condition := range claim.Status.Conditions {
		switch condition.Type {
		case stowagev1alpha1.BindableCondition:
		case "Unused":
			kept = append(kept, corev1.PersistentVolumeClaimCondition{
				Type: condition.Type, Status: condition.Status, LastTransitionTime: condition.LastTransitionTime,
			})
		default:
			kept = append(kept, condition)
		}
	}
	return kept
}

// toldBefore are those of the volumes that a node is told of that it was told of from
// the beginning, in an order that says nothing.
func (w *witness) toldBefore(node *corev1.Node) []corev1.AttachedVolume {
	var kept []corev1.AttachedVolume
	for _, told := range w.before[node.UID].(*corev1.Node).Status.VolumesAttached {
		if slices.ContainsFunc(node.Status.VolumesAttached, func(now corev1.AttachedVolume) bool { return now.Name == told.Name }) {
			kept = append(kept, told)
		}
	}
	return kept
}
