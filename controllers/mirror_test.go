package controllers

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// mirror holds the objects of an API server that only its clients write, as the answers to their writes show them. Specs
// and the caches of their reconcilers read it: most requests of a suite would be such reads.
type mirror struct {
	server client.WithWatch
	// decoder reads the answers to writes.
	decoder runtime.Decoder
	mutex   sync.Mutex
	// kinds have the objects of each kind that was read, and gone the UIDs of those that were removed.
	kinds map[schema.GroupVersionKind]objects
	gone  map[types.UID]bool
	// bypassed is whether other clients write, too, such as those of a manager: every read then asks the server.
	bypassed bool
	// ended is how many specs ended.
	ended int
}

// specsPerComparison is how many specs end before the mirror is compared with the server.
const specsPerComparison = 20

type objects map[client.ObjectKey]client.Object

func newMirror(server client.WithWatch) *mirror {
	decoder := serializer.NewCodecFactory(server.Scheme()).UniversalDeserializer()
	return &mirror{server: server, decoder: decoder, kinds: map[schema.GroupVersionKind]objects{}, gone: map[types.UID]bool{}}
}

// reading is a client that reads the mirror, and writes to the server.
func (m *mirror) reading() client.WithWatch {
	return interceptor.NewClient(m.writing(m.server), interceptor.Funcs{Get: m.get, List: m.list})
}

// writing is a client whose writes the mirror sees. It reads what it read before.
func (m *mirror) writing(by client.WithWatch) client.WithWatch {
	return interceptor.NewClient(by, interceptor.Funcs{
		Create: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return m.write(ctx, object, func(ctx context.Context) error { return to.Create(ctx, object, options...) })
		},
		Update: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return m.write(ctx, object, func(ctx context.Context) error { return to.Update(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, to client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return m.write(ctx, object, func(ctx context.Context) error { return to.Patch(ctx, object, patch, options...) })
		},
		SubResourceUpdate: func(ctx context.Context, to client.Client, name string, object client.Object, options ...client.SubResourceUpdateOption) error {
			return m.write(ctx, object, func(ctx context.Context) error { return to.SubResource(name).Update(ctx, object, options...) })
		},
		SubResourcePatch: func(ctx context.Context, to client.Client, name string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			return m.write(ctx, object, func(ctx context.Context) error { return to.SubResource(name).Patch(ctx, object, patch, options...) })
		},
		Delete: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return m.delete(ctx, object, options, func(ctx context.Context) error { return to.Delete(ctx, object, options...) })
		},
		DeleteAllOf: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.DeleteAllOfOption) error {
			err := to.DeleteAllOf(ctx, object, options...)
			m.forget()
			return err
		},
	})
}

// bypass has all reads ask the server until the spec ends.
func (m *mirror) bypass() {
	m.setBypassed(true)
	DeferCleanup(m.setBypassed, false)
}

func (m *mirror) setBypassed(bypassed bool) {
	m.forget()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.bypassed = bypassed
}

func (m *mirror) forget() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	clear(m.kinds)
}

// put keeps an object of the server, unless its kind was never read.
func (m *mirror) put(object client.Object) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.keep(object)
}

// keep keeps an object unless a later state of it is there.
func (m *mirror) keep(object client.Object) {
	there, known := m.kinds[m.kindOf(object)]
	key := client.ObjectKeyFromObject(object)
	if known && !m.gone[object.GetUID()] && (there[key] == nil || revision(there[key]) < revision(object)) {
		there[key] = object.DeepCopyObject().(client.Object)
	}
}

// endsAtOnce reports whether the deletion of an object is its end: nothing keeps it, and no grace is given.
func endsAtOnce(object client.Object, options []client.DeleteOption) bool {
	if object == nil || len(object.GetFinalizers()) > 0 {
		return false
	}
	_, isPod := object.(*corev1.Pod)
	how := (&client.DeleteOptions{}).ApplyOptions(options)
	return how.PropagationPolicy == nil && len(how.DryRun) == 0 && (!isPod || ptr.Deref(how.GracePeriodSeconds, 1) == 0)
}

// readAgain reads an object that may be gone, unless its kind was never read.
func (m *mirror) readAgain(ctx context.Context, object client.Object) {
	if !m.reads(object) {
		return
	}
	before, current := m.stored(object), reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
	switch err := m.server.Get(ctx, client.ObjectKeyFromObject(object), current); {
	case err == nil:
		m.put(current)
	case !apierrors.IsNotFound(err):
		Expect(err).NotTo(HaveOccurred())
	case before != nil:
		m.remove(before)
	}
}

// remove removes an object, and no later one of its name.
func (m *mirror) remove(gone client.Object) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.gone[gone.GetUID()] = true
	there, key := m.kinds[m.kindOf(gone)], client.ObjectKeyFromObject(gone)
	if there[key] != nil && there[key].GetUID() == gone.GetUID() {
		delete(there, key)
	}
}

// reads reports whether objects of this kind were read.
func (m *mirror) reads(object client.Object) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	_, known := m.kinds[m.kindOf(object)]
	return known
}

// stored is the object of this name that the mirror has; nil for none.
func (m *mirror) stored(object client.Object) client.Object {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.kinds[m.kindOf(object)][client.ObjectKeyFromObject(object)]
}

func (m *mirror) get(ctx context.Context, to client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	kind := m.kindOf(object)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.bypassed || key.Name == "" {
		return to.Get(ctx, key, object, options...)
	}
	found := m.objects(ctx, kind)[key]
	if found == nil {
		return m.notFound(kind, key)
	}
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(found.DeepCopyObject()).Elem())
	return nil
}

func (m *mirror) list(ctx context.Context, to client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
	selected := (&client.ListOptions{}).ApplyOptions(options)
	kind := m.kindOf(list)
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.bypassed || selected.FieldSelector != nil || selected.Limit != 0 {
		return to.List(ctx, list, options...)
	}
	var found []runtime.Object
	for _, object := range inOrder(m.objects(ctx, kind)) {
		if (selected.Namespace == "" || selected.Namespace == object.GetNamespace()) &&
			(selected.LabelSelector == nil || selected.LabelSelector.Matches(labels.Set(object.GetLabels()))) {
			found = append(found, object.DeepCopyObject())
		}
	}
	return meta.SetList(list, found)
}

func (m *mirror) notFound(kind schema.GroupVersionKind, key client.ObjectKey) error {
	mapping, err := m.server.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	return apierrors.NewNotFound(mapping.Resource.GroupResource(), key.Name)
}

// objects are those of a kind. The first read of a kind lists them.
func (m *mirror) objects(ctx context.Context, kind schema.GroupVersionKind) objects {
	if there, known := m.kinds[kind]; known {
		return there
	}
	m.kinds[kind] = m.listed(ctx, kind)
	return m.kinds[kind]
}

// listed are the objects that the server has.
func (m *mirror) listed(ctx context.Context, kind schema.GroupVersionKind) objects {
	list, err := m.server.Scheme().New(kind.GroupVersion().WithKind(kind.Kind + "List"))
	Expect(err).NotTo(HaveOccurred())
	Expect(m.server.List(ctx, list.(client.ObjectList))).To(Succeed())
	there := objects{}
	Expect(meta.EachListItem(list, func(item runtime.Object) error {
		object := item.(client.Object)
		there[client.ObjectKeyFromObject(object)] = object
		return nil
	})).To(Succeed())
	return there
}

// compare expects now and then, at the end of a spec, that the mirror has what the server has. It is filled again then.
func (m *mirror) compare() {
	GinkgoHelper()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.ended++
	if m.ended%specsPerComparison != 0 {
		return
	}
	kinds := m.kinds
	m.kinds = map[schema.GroupVersionKind]objects{}
	for kind, there := range kinds {
		Expect(texts(there)).To(Equal(texts(m.listed(context.Background(), kind))), "the mirror's objects of kind %s", kind.Kind)
	}
}

// texts are whole objects, but for what answers to lists lack.
func texts(of objects) map[string]string {
	texts := map[string]string{}
	for key, object := range of {
		whole := object.DeepCopyObject().(client.Object)
		whole.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		text, err := json.Marshal(whole)
		Expect(err).NotTo(HaveOccurred())
		texts[key.String()] = string(text)
	}
	return texts
}

func (m *mirror) kindOf(object runtime.Object) schema.GroupVersionKind {
	kind, err := apiutil.GVKForObject(object, m.server.Scheme())
	Expect(err).NotTo(HaveOccurred())
	return kind
}

// inOrder sorts objects as the server does.
func inOrder(of objects) []client.Object {
	sorted := make([]client.Object, 0, len(of))
	for _, object := range of {
		sorted = append(sorted, object)
	}
	slices.SortFunc(sorted, func(a, b client.Object) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return sorted
}

func revision(of client.Object) uint64 {
	number, err := strconv.ParseUint(of.GetResourceVersion(), 10, 64)
	Expect(err).NotTo(HaveOccurred())
	return number
}
