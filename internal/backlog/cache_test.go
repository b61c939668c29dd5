package backlog

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
)

const patience = 30 * time.Second

// recorder is a handler that notes its events, and waits before each until it may go on.
type recorder struct {
	gate  chan struct{}
	mu    sync.Mutex
	notes []string
}

func newRecorder(isOpen bool) *recorder {
	made := &recorder{gate: make(chan struct{})}
	if isOpen {
		close(made.gate)
	}
	return made
}

func (r *recorder) note(format string, args ...any) {
	<-r.gate
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

func (r *recorder) noted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.notes)
}

func (r *recorder) OnAdd(object any, isInInitialList bool) {
	r.note("%s there at first: %t", named(object), isInInitialList)
}

func (r *recorder) OnUpdate(before, after any) {
	r.note("%s from %s to %s", named(after), labelled(before), labelled(after))
}

func (r *recorder) OnDelete(object any) { r.note("%s deleted", named(object)) }

func named(object any) string    { return object.(*corev1.PersistentVolume).Name }
func labelled(object any) string { return object.(*corev1.PersistentVolume).Labels["state"] }

func volume(name, state string) *corev1.PersistentVolume {
	made := &corev1.PersistentVolume{}
	made.Name, made.Labels = name, map[string]string{"state": state}
	return made
}

// start runs the informer of a source, behind a hub.
func start(t *testing.T, source *cachetesting.FakeControllerSource) *hub {
	t.Helper()
	inner := toolscache.NewSharedIndexInformer(source, &corev1.PersistentVolume{}, 0, toolscache.Indexers{})
	made, err := newHub(inner)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	stop := make(chan struct{})
	running.Go(func() { inner.Run(stop) })
	t.Cleanup(func() { close(stop); running.Wait(); source.Shutdown() })
	if err := made.awaitSynced(t.Context()); err != nil {
		t.Fatal(err)
	}
	return made
}

func (h *hub) mustAdd(t *testing.T, handler toolscache.ResourceEventHandler) toolscache.ResourceEventHandlerRegistration {
	t.Helper()
	added, err := h.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return added
}

func mustSync(t *testing.T, added toolscache.ResourceEventHandlerRegistration) {
	t.Helper()
	select {
	case <-added.HasSyncedChecker().Done():
	case <-time.After(patience):
		t.Fatal("it doesn't sync")
	}
	if !added.HasSynced() {
		t.Error("it has synced, and says it has not")
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("after %s it doesn't hold that %s", patience, what)
		}
	}
}

func TestAHandlerGetsItsEventsInOrder(t *testing.T) {
	source := cachetesting.NewFakeControllerSource()
	source.Add(volume("a", "old"))
	informer := start(t, source)
	handler := newRecorder(true)
	mustSync(t, informer.mustAdd(t, handler))
	source.Add(volume("b", "old"))
	source.Modify(volume("a", "new"))
	source.Modify(volume("b", "new"))
	source.Delete(volume("a", "new"))

	want := []string{"a there at first: true", "b there at first: false", "a from old to new", "b from old to new", "a deleted"}
	eventually(t, "all events came", func() bool { return len(handler.noted()) == len(want) })
	if got := handler.noted(); !slices.Equal(got, want) {
		t.Errorf("they are %q", got)
	}
}

func TestAHandlerHasSyncedOnceItHadAllObjectsThatWereThere(t *testing.T) {
	source := cachetesting.NewFakeControllerSource()
	for i := range 2000 {
		source.Add(volume(fmt.Sprint("v", i), "old"))
	}
	informer := start(t, source)
	slow := newRecorder(false)
	added := informer.mustAdd(t, slow)
	mustSync(t, informer.mustAdd(t, newRecorder(true)))
	if added.HasSynced() {
		t.Error("it has synced before it had one")
	}
	close(slow.gate)
	mustSync(t, added)
	if had := len(slow.noted()); had != 2000 {
		t.Errorf("it has synced after %d", had)
	}
	if name := added.HasSyncedChecker().Name(); name == "" {
		t.Error("it has no name")
	}
}

func TestAnInformerKnowsOneHandlerHoweverManyThereAre(t *testing.T) {
	source := cachetesting.NewFakeControllerSource()
	source.Add(volume("a", "old"))
	informer := start(t, source)
	var handlers []*recorder
	for range 10 {
		handlers = append(handlers, newRecorder(true))
		mustSync(t, informer.mustAdd(t, handlers[len(handlers)-1]))
	}
	source.Modify(volume("a", "new"))
	for _, handler := range handlers {
		eventually(t, "it has the change", func() bool { return slices.Contains(handler.noted(), "a from old to new") })
	}
	if got := reflect.ValueOf(informer.SharedIndexInformer).Elem().FieldByName("processor").Elem().FieldByName("listeners").Len(); got != 1 {
		t.Errorf("it knows %d", got)
	}
}

// The hub may be behind the store: what it gets later than that isn't lost.
func TestAHandlerMissesNothingThatTheHubGetsAfterTheStore(t *testing.T) {
	source := cachetesting.NewFakeControllerSource()
	source.Add(volume("a", "newest"))
	informer := start(t, source)
	handler := newRecorder(true)
	mustSync(t, informer.mustAdd(t, handler))
	informer.OnUpdate(volume("a", "old"), volume("a", "newest"))
	informer.OnAdd(volume("b", "old"), false)
	informer.OnDelete(volume("b", "old"))
	want := []string{"a there at first: true", "a from old to newest", "b there at first: false", "b deleted"}
	eventually(t, "it has all", func() bool { return slices.Equal(handler.noted(), want) })
}

func TestAHandlerWithAResyncOfItsOwnIsTheInformers(t *testing.T) {
	source := cachetesting.NewFakeControllerSource()
	source.Add(volume("a", "old"))
	informer := start(t, source)
	handler := newRecorder(true)
	added, err := informer.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{ResyncPeriod: new(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has the object", func() bool { return len(handler.noted()) == 1 })
	if err := informer.RemoveEventHandler(added); err != nil || len(informer.handlers) > 0 {
		t.Errorf("the hub has %d handlers (%v)", len(informer.handlers), err)
	}
}

func TestAHandlerThatComesLaterGetsWhatIsThere(t *testing.T) {
	source := cachetesting.NewFakeControllerSource()
	source.Add(volume("a", "old"))
	informer := start(t, source)
	mustSync(t, informer.mustAdd(t, newRecorder(true)))
	source.Add(volume("b", "old"))
	eventually(t, "the informer has both", func() bool { return len(informer.GetStore().List()) == 2 })
	late := newRecorder(true)
	mustSync(t, informer.mustAdd(t, late))
	if got := late.noted(); len(got) != 2 {
		t.Errorf("it gets %q", got)
	}
}

func TestAHandlerThatIsRemovedGetsNoMore(t *testing.T) {
	source := cachetesting.NewFakeControllerSource()
	informer := start(t, source)
	removed, other := newRecorder(true), newRecorder(true)
	added := informer.mustAdd(t, removed)
	mustSync(t, added)
	mustSync(t, informer.mustAdd(t, other))
	for range 2 {
		if err := informer.RemoveEventHandler(added); err != nil {
			t.Fatal(err)
		}
	}
	source.Add(volume("a", "old"))
	eventually(t, "the other has it", func() bool { return len(other.noted()) == 1 })
	if got := removed.noted(); len(got) > 0 {
		t.Errorf("it gets %q", got)
	}
}

func TestEventsThatAreDeliveredLeaveNoMemory(t *testing.T) {
	handler := newRecorder(false)
	waiting := &events{handler: handler}
	for i := range 3*perBlock + 1 {
		waiting.OnAdd(volume(fmt.Sprint("v", i), ""), true)
	}
	close(handler.gate)
	eventually(t, "no event waits", func() bool {
		waiting.mu.Lock()
		defer waiting.mu.Unlock()
		return waiting.waiting == nil && !waiting.isDelivering
	})
	if had := len(handler.noted()); had != 3*perBlock+1 {
		t.Errorf("the handler had %d", had)
	}
}
