package objects

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/nodemanager/content"
)

var (
	first, second = podOf("1"), podOf("2")
	errDown       = errors.New("connection refused")
)

func TestAnObjectIsFollowed(t *testing.T) {
	w := newWorld(t, password("one"))
	if got := w.shows(t, first); got != "one" {
		t.Fatalf("it shows %q", got)
	}
	w.awaitWatch(t)

	w.set(t, "two")

	w.awaitChanged(t, "1")
	if got := w.shows(t, first); got != "two" || w.gets.Load() != 1 {
		t.Errorf("it shows %q after %d reads", got, w.gets.Load())
	}
}

func TestAnObjectIsWatchedOnceForAllPodsUntilTheLastIsGone(t *testing.T) {
	w, before := newWorld(t, password("one")), runtime.NumGoroutine()
	for i := range 50 {
		if got := w.shows(t, podOf(types.UID(fmt.Sprint(i)))); got != "one" {
			t.Fatalf("it shows %q", got)
		}
	}
	w.awaitWatch(t)
	for i := range 49 {
		w.Forget(types.UID(fmt.Sprint(i)))
	}
	w.set(t, "two")
	w.awaitChanged(t, "49")
	if len(w.watches) != 0 {
		t.Error("it is watched more than once")
	}

	w.Forget("49")

	awaitGoroutines(t, before)
	w.mustKnowNothing(t)
}

func TestAWatchGoesOnForAPodThatComesRightAfterTheLastOne(t *testing.T) {
	w := newWorld(t, password("one"))
	w.shows(t, first)
	w.awaitWatch(t)
	w.Forget(first.UID)

	if got := w.shows(t, second); got != "one" || w.gets.Load() != 2 {
		t.Errorf("it shows %q after %d reads", got, w.gets.Load())
	}
	<-time.After(2 * lingers)
	w.set(t, "two")
	w.awaitChanged(t, second.UID)
	if len(w.watches) != 0 {
		t.Error("it is watched again")
	}
}

func TestAnObjectOfAPodThatGoesAtOnceIsNotWatched(t *testing.T) {
	w := newWorld(t, password("one"))
	w.shows(t, first)
	w.Forget(first.UID)
	w.shared.watches.Wait()
	if len(w.watches) != 0 {
		t.Error("it was watched")
	}
}

func TestNothingIsWatchedAfterTheEnd(t *testing.T) {
	w, before := newWorld(t, password("one")), runtime.NumGoroutine()
	w.shows(t, first)
	w.awaitWatch(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}

	awaitGoroutines(t, before)
	if got := w.shows(t, second); got != "one" || len(w.watches) != 0 {
		t.Errorf("it shows %q, and %d watches began", got, len(w.watches))
	}
}

func TestAnImmutableObjectIsReadForEachPodAndNotWatched(t *testing.T) {
	immutable := password("one")
	immutable.Immutable = new(true)
	w := newWorld(t, immutable)
	for range 3 {
		w.shows(t, first)
		w.shows(t, second)
	}
	if w.gets.Load() != 2 || len(w.watches) != 0 || w.objects[key{secret, "default", "password"}].stop != nil {
		t.Errorf("it was read %d times, and %d watches began", w.gets.Load(), len(w.watches))
	}
}

func TestSeveralVolumesOfAPodReadAnObjectOnce(t *testing.T) {
	w := newWorld(t, password("one"))
	var volumes sync.WaitGroup
	for range 10 {
		volumes.Go(func() {
			if got := w.shows(t, first); got != "one" {
				t.Errorf("it shows %q", got)
			}
		})
	}
	volumes.Wait()
	if w.gets.Load() != 1 {
		t.Errorf("it was read %d times", w.gets.Load())
	}
}

func TestAnObjectThatBecomesImmutableIsNotWatchedAnyMore(t *testing.T) {
	w, before := newWorld(t, password("one")), runtime.NumGoroutine()
	w.shows(t, first)
	w.awaitWatch(t)
	immutable := &corev1.Secret{}
	if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(password("")), immutable); err != nil {
		t.Fatal(err)
	}
	immutable.Immutable, immutable.Data["key"] = new(true), []byte("two")
	if err := w.api.Update(t.Context(), immutable); err != nil {
		t.Fatal(err)
	}

	awaitGoroutines(t, before)
	if got := w.shows(t, first); got != "two" {
		t.Errorf("it shows %q", got)
	}
}

func TestPodsAreCalledWhenAMissingObjectIsCreated(t *testing.T) {
	w := newWorld(t)
	if _, err := w.Secret(t.Context(), first, "password"); !errors.Is(err, content.ErrMissing) || !strings.Contains(err.Error(), "secret default/password") {
		t.Fatalf("got %v", err)
	}
	w.awaitWatch(t)

	if err := w.api.Create(t.Context(), password("one")); err != nil {
		t.Fatal(err)
	}

	w.awaitChanged(t, "1")
	if got := w.shows(t, first); got != "one" || w.gets.Load() != 1 {
		t.Errorf("it shows %q after %d reads", got, w.gets.Load())
	}
}

func TestAPodCreatedAfterADeletionGetsNoDeletedObjectThoughTheWatchIsBehind(t *testing.T) {
	w := newWorld(t, password("one"))
	w.spoilt.Watch = func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
		return watch.NewFake(), nil
	}
	w.shows(t, first)
	w.awaitWatch(t)
	if err := w.api.Delete(t.Context(), password("")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := w.Secret(t.Context(), second, "password"); !errors.Is(err, content.ErrMissing) {
			t.Errorf("got %v", err)
		}
	}
}

func TestADeletedObjectIsMissing(t *testing.T) {
	w := newWorld(t, password("one"))
	w.shows(t, first)
	w.awaitWatch(t)

	if err := w.api.Delete(t.Context(), password("")); err != nil {
		t.Fatal(err)
	}

	w.awaitChanged(t, "1")
	if _, err := w.Secret(t.Context(), first, "password"); !errors.Is(err, content.ErrMissing) {
		t.Errorf("got %v", err)
	}
}

func TestANewPodNeverGetsAnOlderObject(t *testing.T) {
	w := newWorld(t, password("one"))
	behind := watch.NewFake()
	w.spoilt.Watch = func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
		return behind, nil
	}
	w.shows(t, first)
	w.awaitWatch(t)
	old, err := w.Secret(t.Context(), first, "password")
	if err != nil {
		t.Fatal(err)
	}
	w.set(t, "two")
	if got := w.shows(t, first); got != "one" {
		t.Fatalf("the watch isn't behind: it shows %q", got)
	}

	if got := w.shows(t, second); got != "two" {
		t.Errorf("a new pod shows %q", got)
	}
	w.awaitChanged(t, "1")
	behind.Modify(old.DeepCopy())
	behind.Delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}})
	behind.Modify(old.DeepCopy()) // the one before was noted when this one is taken
	for _, pod := range []*corev1.Pod{first, second} {
		if got := w.shows(t, pod); got != "two" {
			t.Errorf("pod %s shows %q after an old event of the watch", pod.UID, got)
		}
	}
}

func TestAWatchThatEndsBeginsAgainAndListsWhatItMissed(t *testing.T) {
	w := newWorld(t, password("one"))
	broken := watch.NewFake()
	w.spoilt.Watch = func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
		w.spoilt.Watch = nil
		return broken, nil
	}
	w.shows(t, first)
	w.awaitWatch(t)
	w.set(t, "two")

	broken.Stop()

	w.awaitChanged(t, "1")
	if got := w.shows(t, first); got != "two" {
		t.Errorf("it shows %q", got)
	}
}

func TestAnObjectThatWasReadIsKeptWhileTheAPIServerIsDown(t *testing.T) {
	w := newWorld(t, password("one"))
	w.shows(t, first)
	w.awaitWatch(t)

	w.spoilt.Get = func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errDown
	}

	if got := w.shows(t, first); got != "one" {
		t.Errorf("it shows %q", got)
	}
	if _, err := w.Secret(t.Context(), second, "password"); !errors.Is(err, errDown) || errors.Is(err, content.ErrMissing) {
		t.Errorf("a new pod got %v", err)
	}
}

func TestAForbiddenObjectMayExist(t *testing.T) {
	w := newWorld(t, password("one"))
	w.spoilt.Get = func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, errors.New("no relationship found"))
	}
	if _, err := w.Secret(t.Context(), first, "password"); !errors.Is(err, content.ErrMissing) || !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}

	w.spoilt.Get = nil

	if got := w.shows(t, first); got != "one" {
		t.Errorf("it shows %q", got)
	}
}

func TestAConfigMapAndASecretOfOneNameAreTwo(t *testing.T) {
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "password"}, Data: map[string]string{"key": "open"}}
	w := newWorld(t, password("one"), settings)
	w.shows(t, first)
	found, err := w.ConfigMap(t.Context(), first, "password")
	if err != nil || found.Data["key"] != "open" {
		t.Errorf("got %v (%v)", found, err)
	}
}

func TestTheNodeIsTheReadersOwn(t *testing.T) {
	w := newWorld(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	if node, err := w.Node(t.Context()); err != nil || node.Name != "n1" {
		t.Errorf("got %v (%v)", node, err)
	}
	w.NodeName = "n2"
	if _, err := w.Node(t.Context()); !errors.Is(err, content.ErrMissing) {
		t.Errorf("got %v", err)
	}
}
