// Package monitor sees what happens to the storage of a cluster that is in use: tests in
// which nothing may happen to it, such as of a hand-over, have one look all the time. It
// writes nothing.
package monitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// Monitor sees whatever happens to the claims, volumes, attachments and nodes that there
// are when it begins, also what is put right again a moment later.
type Monitor struct {
	before   map[types.UID]client.Object
	watching []watch.Interface

	mu   sync.Mutex
	seen []watch.Event
}

// New begins to look at what is to stay as it is. Stop ends it.
func New(ctx context.Context, cluster client.WithWatch, isToStay func(client.Object) bool) (*Monitor, error) {
	m := &Monitor{before: map[types.UID]client.Object{}}
	for _, list := range []client.ObjectList{
		&corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}, &storagev1.VolumeAttachmentList{}, &corev1.NodeList{},
	} {
		if err := m.begin(ctx, cluster, list, isToStay); err != nil {
			m.Stop()
			return nil, err
		}
	}
	return m, nil
}

func (m *Monitor) begin(ctx context.Context, cluster client.WithWatch, list client.ObjectList, isToStay func(client.Object) bool) error {
	if err := cluster.List(ctx, list); err != nil {
		return fmt.Errorf("listing what there is: %w", err)
	}
	_ = meta.EachListItem(list, func(item runtime.Object) error { // the lists are of objects
		if object := item.(client.Object); isToStay(object) {
			m.before[object.GetUID()] = object
		}
		return nil
	})
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}
	watching, err := cluster.Watch(ctx, list, from)
	if err != nil {
		return fmt.Errorf("watching what happens: %w", err)
	}
	m.watching = append(m.watching, watching)
	go m.look(watching)
	return nil
}

func (m *Monitor) look(watching watch.Interface) {
	for event := range watching.ResultChan() {
		m.mu.Lock()
		m.seen = append(m.seen, event)
		m.mu.Unlock()
	}
}

// Stop ends looking.
func (m *Monitor) Stop() {
	for _, watching := range m.watching {
		watching.Stop()
	}
}

// Check fails where anything happened to what was there that its users could notice. Allowed
// are the conditions of claims that Stowage is documented to write, and of nodes all but
// volumesAttached. It also fails where no event was seen: then the watch did not work.
func (m *Monitor) Check() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := 0
	for _, event := range m.seen {
		if event.Type == watch.Error {
			return fmt.Errorf("the monitor's watch failed: %v", event.Object)
		}
		now := event.Object.(client.Object)
		before, is := m.before[now.GetUID()]
		if !is {
			continue
		}
		known++
		if event.Type != watch.Modified {
			return fmt.Errorf("%T %s: %s", now, now.GetName(), event.Type)
		}
		if was, is := m.essence(before), m.essence(now); !equality.Semantic.DeepEqual(was, is) {
			return fmt.Errorf("%T %s was\n%sand is\n%s", now, now.GetName(), show(was), show(is))
		}
	}
	if known == 0 {
		return errors.New("the monitor saw nothing: not even the conditions of claims")
	}
	return nil
}

func show(object client.Object) []byte {
	text, err := yaml.Marshal(object)
	if err != nil {
		return []byte(err.Error())
	}
	return text
}

func (m *Monitor) essence(object client.Object) client.Object {
	object = object.DeepCopyObject().(client.Object)
	object.SetResourceVersion("")
	object.SetManagedFields(nil)
	switch object := object.(type) {
	case *corev1.PersistentVolumeClaim:
		object.Status.Conditions = conditions(object)
	case *corev1.Node:
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: object.Name, UID: object.UID},
			Status:     corev1.NodeStatus{VolumesAttached: m.attachedBefore(object)},
		}
	}
	return object
}

// conditions are those that are to stay. Whether a claim is unused, and since when, stays;
// reason and message may change with the controller that writes them.
func conditions(claim *corev1.PersistentVolumeClaim) []corev1.PersistentVolumeClaimCondition {
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

// attachedBefore are the volumes in volumesAttached of a node that were in it from the
// beginning, in the order of then.
func (m *Monitor) attachedBefore(node *corev1.Node) []corev1.AttachedVolume {
	var kept []corev1.AttachedVolume
	for _, attached := range m.before[node.UID].(*corev1.Node).Status.VolumesAttached {
		if slices.ContainsFunc(node.Status.VolumesAttached, func(now corev1.AttachedVolume) bool { return now.Name == attached.Name }) {
			kept = append(kept, attached)
		}
	}
	return kept
}
