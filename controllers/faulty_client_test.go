package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"sync"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/slim"
)

var errInjected = errors.New("injected fault")

// fault says what happens to a write: a lost one doesn't reach the API server, an
// unanswered one does, but the writer gets an error. Before a contended one, another writer
// changes the object, and before an overtaken one it deletes it.
type fault string

const (
	lost       fault = "lost"
	unanswered fault = "unanswered"
	contended  fault = "contended"
	overtaken  fault = "overtaken"
)

// faultyClient reads and writes the API server itself, keeps as much of what it reads as the
// manager's cache does, answers its field indexes from that, counts writes, and fails those in
// faults. It writes with the rights of a manager.
type faultyClient struct {
	client.WithWatch
	// direct never fails: it is the spec's own.
	direct client.WithWatch
	// reads are live ones, with the rights of a manager.
	reads client.WithWatch
	// counting guards the count of concurrent writes.
	counting sync.Mutex
	// faults are what happens to writes, by their number from 0.
	faults  map[int]fault
	written int
}

func newFaultyClient(direct, manager client.WithWatch) *faultyClient {
	list := func(ctx context.Context, to client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		return listIndexed(ctx, to, list, options)
	}
	c := &faultyClient{direct: direct, reads: interceptor.NewClient(manager, interceptor.Funcs{List: list})}
	c.WithWatch = interceptor.NewClient(direct, interceptor.Funcs{
		Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			err := to.Get(ctx, key, object, options...)
			slimmed(object)
			return err
		},
		List: func(ctx context.Context, to client.WithWatch, objects client.ObjectList, options ...client.ListOption) error {
			err := list(ctx, to, objects, options...)
			slimmed(objects)
			return err
		},
		Create: func(ctx context.Context, _ client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return c.write(ctx, object, func() error { return manager.Create(ctx, object, options...) })
		},
		Delete: func(ctx context.Context, _ client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return c.write(ctx, object, func() error { return manager.Delete(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, _ client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return c.write(ctx, object, func() error { return manager.Patch(ctx, object, patch, options...) })
		},
		SubResourcePatch: func(ctx context.Context, _ client.Client, name string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			return c.write(ctx, object, func() error { return manager.SubResource(name).Patch(ctx, object, patch, options...) })
		},
	})
	return c
}

// slimmed makes what the API server returned what the manager's cache keeps of it.
func slimmed(got runtime.Object) {
	each := func(object runtime.Object) error {
		_, err := slim.Object(object)
		return err
	}
	if meta.IsListType(got) {
		Expect(meta.EachListItem(got, each)).To(Succeed())
	} else {
		Expect(each(got)).To(Succeed())
	}
	// The cache gives a copy: what is shared stays as it is.
	reflect.ValueOf(got).Elem().Set(reflect.ValueOf(got.DeepCopyObject()).Elem())
}

func (c *faultyClient) write(ctx context.Context, object client.Object, do func() error) error {
	fault := c.next()
	switch fault {
	case lost:
		return errInjected
	case contended:
		c.touch(ctx, object)
	case overtaken:
		Expect(c.direct.Delete(ctx, object.DeepCopyObject().(client.Object))).To(Succeed())
	}
	if err := do(); err != nil {
		return err
	}
	if fault == unanswered {
		return errInjected
	}
	return nil
}

// next counts a write, and says what happens to it.
func (c *faultyClient) next() fault {
	c.counting.Lock()
	defer c.counting.Unlock()
	fault := c.faults[c.written]
	c.written++
	return fault
}

// touch changes an annotation of an object, if it exists, that no reconciler reads.
func (c *faultyClient) touch(ctx context.Context, object client.Object) {
	current := object.DeepCopyObject().(client.Object)
	if c.direct.Get(ctx, client.ObjectKeyFromObject(object), current) != nil {
		return
	}
	annotations := maps.Clone(current.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["example.com/touched"] = strconv.Itoa(c.written)
	current.SetAnnotations(annotations)
	Expect(c.direct.Update(ctx, current)).To(Succeed())
}

// all lists every object of a kind.
func (c *faultyClient) all(list client.ObjectList) []client.Object {
	Expect(c.direct.List(context.Background(), list)).To(Succeed())
	items, err := meta.ExtractList(list)
	Expect(err).NotTo(HaveOccurred())
	objects := make([]client.Object, 0, len(items))
	for _, item := range items {
		objects = append(objects, item.(client.Object))
	}
	return objects
}

// listIndexed lists by one of the cache's field indexes. The API server has none, so it lists
// everything and filters.
func listIndexed(ctx context.Context, to client.Client, list client.ObjectList, options []client.ListOption) error {
	selected := (&client.ListOptions{}).ApplyOptions(options)
	if selected.FieldSelector == nil {
		return to.List(ctx, list, options...)
	}
	wanted := selected.FieldSelector.Requirements()[0]
	selected.FieldSelector = nil
	if err := to.List(ctx, list, selected); err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	var kept []runtime.Object
	for _, item := range items {
		for _, value := range indexed(item, wanted.Field) {
			if value == wanted.Value {
				kept = append(kept, item)
			}
		}
	}
	return meta.SetList(list, kept)
}

// fieldIndexes are the manager's field indexes, by the type of object and the field.
type fieldIndexes map[string]client.IndexerFunc

// IndexField implements client.FieldIndexer.
func (x fieldIndexes) IndexField(_ context.Context, object client.Object, field string, values client.IndexerFunc) error {
	x[fmt.Sprintf("%T %s", object, field)] = values
	return nil
}

// cacheIndexes are those of all reconcilers.
var cacheIndexes = sync.OnceValue(func() fieldIndexes {
	indexes := fieldIndexes{}
	Expect(index.Add(context.Background(), indexes)).To(Succeed())
	Expect(indexes.IndexField(context.Background(), &storagev1.CSIStorageCapacity{}, index.CapacitiesByDisk, index.DiskOfCapacity)).To(Succeed())
	Expect(attachintent.AddIndex(context.Background(), indexes)).To(Succeed())
	Expect(index.AddContents(context.Background(), indexes)).To(Succeed())
	Expect(index.AddSnapshots(context.Background(), indexes)).To(Succeed())
	return indexes
})

// indexed returns an object's values in one of the manager's field indexes.
func indexed(object runtime.Object, field string) []string {
	values := cacheIndexes()[fmt.Sprintf("%T %s", object, field)]
	Expect(values).NotTo(BeNil(), "index %s of %T", field, object)
	return values(object.(client.Object))
}

// withoutPods is a cache that has not seen any pod yet.
type withoutPods struct{ client.Client }

func (c withoutPods) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, isPod := object.(*corev1.Pod); isPod {
		return apierrors.NewNotFound(corev1.Resource("pods"), key.Name)
	}
	return c.Client.Get(ctx, key, object, options...)
}

// withoutClaims is a cache that has not seen any claim yet.
type withoutClaims struct{ client.Client }

func (c withoutClaims) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, isClaim := object.(*corev1.PersistentVolumeClaim); isClaim {
		return apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), key.Name)
	}
	return c.Client.Get(ctx, key, object, options...)
}
