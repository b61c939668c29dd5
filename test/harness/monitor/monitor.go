// Package monitor sees what happens to the storage of a cluster that is in use: tests in
// which nothing may happen to it, such as of a hand-over, have one look all the time. It
// writes nothing.
package monitor

import (
	"context"
	"errors"
	"fmt"
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

// begin reads objects of a kind, and watches from there on.
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

// Check fails where anything happened to what was there that somebody who uses it could
// notice. Allowed are the conditions of claims that Stowage is documented to write, and
// of nodes all but the volumes that they are told of. It also fails where nothing at all
// was seen: then nobody looked.
func (m *Monitor) Check() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := 0
	for _, event := range m.seen {
		if event.Type == watch.Error {
			return fmt.Errorf("the monitor lost sight: %v", event.Object)
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

// show is an object for people.
func show(object client.Object) []byte {
	text, err := yaml.Marshal(object)
	if err != nil {
		return []byte(err.Error())
	}
	return text
}
