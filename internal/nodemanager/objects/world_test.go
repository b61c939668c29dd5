package objects

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// soon is how long something that happens at once may take on a busy machine.
const soon = 30 * time.Second

// world is an API server, and a Reader of it.
type world struct {
	*Reader
	api   client.Client
	clock *clocktesting.FakeClock
	// gets counts live reads, and watches has those that began.
	gets    atomic.Int32
	watches chan struct{}
	changed chan types.UID
	// spoilt is what the API server does otherwise.
	spoilt interceptor.Funcs
}

// plain is a client of an API server that has no streaming lists, as fake ones.
type plain struct{ client.WithWatch }

func (plain) IsWatchListSemanticsUnSupported() bool { return true }

func newWorld(t *testing.T, known ...client.Object) *world {
	t.Helper()
	byName := func(object client.Object) []string { return []string{object.GetName()} }
	api := fake.NewClientBuilder().WithObjects(known...).
		WithIndex(&corev1.Secret{}, metav1.ObjectNameField, byName).
		WithIndex(&corev1.ConfigMap{}, metav1.ObjectNameField, byName).Build()
	w := &world{
		api: api, clock: clocktesting.NewFakeClock(time.Now()),
		watches: make(chan struct{}, 100), changed: make(chan types.UID, 1000),
	}
	live := interceptor.NewClient(api, interceptor.Funcs{Get: w.get, Watch: w.watch, SubResourceCreate: w.issue})
	w.Reader = New(Options{NodeName: "n1", Live: plain{live}, Cached: api, Clock: w.clock})
	w.OnChange(func(pod types.UID) { w.changed <- pod })
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) get(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	w.gets.Add(1)
	if w.spoilt.Get != nil {
		return w.spoilt.Get(ctx, api, key, object, options...)
	}
	return api.Get(ctx, key, object, options...)
}

func (w *world) watch(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	defer func() { w.watches <- struct{}{} }()
	if w.spoilt.Watch != nil {
		return w.spoilt.Watch(ctx, api, list, options...)
	}
	return api.Watch(ctx, list, options...)
}

func (w *world) issue(ctx context.Context, api client.Client, name string, object, sub client.Object, options ...client.SubResourceCreateOption) error {
	if w.spoilt.SubResourceCreate != nil {
		return w.spoilt.SubResourceCreate(ctx, api, name, object, sub, options...)
	}
	return api.SubResource(name).Create(ctx, object, sub, options...)
}

// shows is what a pod is given of the secret: the value of its key, or why not.
func (w *world) shows(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	found, err := w.Secret(t.Context(), pod, "password")
	if err != nil {
		return err.Error()
	}
	return string(found.Data["key"])
}

// set gives the secret another value.
func (w *world) set(t *testing.T, value string) {
	t.Helper()
	read := &corev1.Secret{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "password"}, read); err != nil {
		t.Fatal(err)
	}
	read.Data["key"] = []byte(value)
	if err := w.api.Update(t.Context(), read); err != nil {
		t.Fatal(err)
	}
}

// awaitChanged waits until these pods were called with.
func (w *world) awaitChanged(t *testing.T, pods ...types.UID) {
	t.Helper()
	waiting := map[types.UID]bool{}
	for _, pod := range pods {
		waiting[pod] = true
	}
	timeout := time.After(soon)
	for len(waiting) > 0 {
		select {
		case pod := <-w.changed:
			delete(waiting, pod)
		case <-timeout:
			t.Fatalf("no call: %v", waiting)
		}
	}
}

// awaitWatch waits until a watch began.
func (w *world) awaitWatch(t *testing.T) {
	t.Helper()
	select {
	case <-w.watches:
	case <-time.After(soon):
		t.Fatal("nothing is watched")
	}
}

// mustKnowNothing checks that no object is left.
func (w *world) mustKnowNothing(t *testing.T) {
	t.Helper()
	w.shared.mu.Lock()
	defer w.shared.mu.Unlock()
	if len(w.objects) != 0 {
		t.Errorf("what is left: %v", w.objects)
	}
}

// awaitGoroutines waits until there are no more than before.
func awaitGoroutines(t *testing.T, before int) {
	t.Helper()
	for deadline := time.Now().Add(soon); runtime.NumGoroutine() > before; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines are left of %d", runtime.NumGoroutine(), before)
		}
	}
}

func podOf(uid types.UID) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pod-" + string(uid), UID: uid},
		Spec:       corev1.PodSpec{NodeName: "n1", ServiceAccountName: "robot"},
	}
}

func password(value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "password", UID: "secret-1"},
		Data:       map[string][]byte{"key": []byte(value)},
	}
}
