package queue_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/backend/queue"
)

// thinking answers about volume objects when it is let: it denies all.
type thinking struct {
	*fake.Backend
	asked  atomic.Int32
	answer chan struct{}
}

func (d *thinking) Validate(context.Context, *corev1.PersistentVolume) error {
	d.asked.Add(1)
	<-d.answer
	return backend.Invalid.Errorf("no")
}

func TestQuestionsAboutVolumeObjectsTakeOneSlotAndVolumesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		driver := &thinking{Backend: fake.New(), answer: make(chan struct{})}
		calls, woken := queue.New(t.Context(), nil), make(chan int, 100)
		serve := func(wake func()) backend.Backend {
			return calls.Serve(queue.Target{Name: "driver", Limit: 2}, driver, wake)
		}
		ask := func(number int) error {
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(number)}}
			return backend.Validate(t.Context(), serve(func() { woken <- number }), pv)
		}
		began := time.Now()
		for number := range 10 {
			if err := ask(number); !errors.Is(err, backend.Queued) {
				t.Errorf("it has %v", err)
			}
		}
		synctest.Wait()
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the callers, which have other work, waited for %s", waited)
		}
		if driver.asked.Load() != 1 {
			t.Errorf("%d calls run at once", driver.asked.Load())
		}
		if _, err := serve(func() {}).Provision(t.Context(), backendtest.Request("1")); err != nil {
			t.Errorf("a volume has %v", err)
		}
		close(driver.answer)
		synctest.Wait()
		answered := map[int]bool{}
		for len(woken) > 0 {
			number := <-woken
			answered[number] = answered[number] || errors.Is(ask(number), backend.Invalid)
			synctest.Wait()
		}
		if driver.asked.Load() != 10 || len(answered) != 10 || slices.Contains(slices.Collect(maps.Values(answered)), false) {
			t.Errorf("it was asked %d times, and has answered %v", driver.asked.Load(), answered)
		}
	})
}

func TestAnAnswerIsAboutWhatTheVolumeObjectSaysNow(t *testing.T) {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "1"}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h", VolumeAttributes: map[string]string{"a": "1", "b": "2"}}
	before := backend.PromiseOf(pv)
	if pv.ResourceVersion = "2"; backend.PromiseOf(pv.DeepCopy()) != before {
		t.Error("a write that changes nothing of it makes it another")
	}
	for name, change := range map[string]func(*corev1.PersistentVolume){
		"its object": func(pv *corev1.PersistentVolume) { pv.UID = "2" },
		"its modes": func(pv *corev1.PersistentVolume) {
			pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		},
		"its volume mode":    func(pv *corev1.PersistentVolume) { pv.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) },
		"its mount options":  func(pv *corev1.PersistentVolume) { pv.Spec.MountOptions = []string{"ro"} },
		"an attribute of it": func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeAttributes["a"] = "3" },
	} {
		changed := pv.DeepCopy()
		change(changed)
		if backend.PromiseOf(changed) == before {
			t.Errorf("%s is no part of what it says", name)
		}
	}
}
