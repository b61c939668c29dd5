package controllers

import (
	"context"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/wake"
)

// settle runs all reconcilers over all objects until a whole round writes
// nothing. Errors are what faults and waiting are made of: a round goes on.
func (w *world) settle() {
	GinkgoHelper()
	w.settleBy(w.round)
}

// settleBy runs rounds until one writes nothing.
func (w *world) settleBy(round func() error) {
	GinkgoHelper()
	for range maxRounds {
		before := w.written
		_ = round()
		if w.written == before {
			return
		}
	}
	Fail("the cluster did not come to rest")
}

// failWrite has one of the next writes of reconcilers fail, and runs rounds until it did.
func (w *world) failWrite(number int, kind fault) {
	GinkgoHelper()
	w.failWriteBy(w.round, number, kind)
}

func (w *world) failWriteBy(run func() error, number int, kind fault) {
	GinkgoHelper()
	hit := w.written + number
	w.faults = map[int]fault{hit: kind}
	for round := 0; round < maxRounds && w.written <= hit; round++ {
		_ = run()
	}
	Expect(w.written).To(BeNumerically(">", hit), "there is no such write")
}

// logging is the context of a pass, whose lines are in the world's log.
func (w *world) logging() context.Context { return ctrl.LoggerInto(context.Background(), w.log) }

// round runs all reconcilers once over all objects.
func (w *world) round() error {
	ctx := w.logging()
	w.fedAfter = unfed
	var failures []error
	for _, object := range w.all(&stowagev1alpha1.StorageBackendList{}) {
		_, err := w.backends.Reconcile(ctx, wake.Request(object))
		failures = append(failures, err)
		_, err = w.audits.Reconcile(ctx, wake.Request(object))
		failures = append(failures, err)
		_, err = w.comparisons.Reconcile(ctx, wake.Request(object))
		failures = append(failures, err)
	}
	for _, object := range w.all(&corev1.PersistentVolumeClaimList{}) {
		w.feedWrites()
		_, err := w.claims.Reconcile(ctx, wake.Request(object))
		failures = append(failures, err)
	}
	w.feedWrites()
	for _, object := range w.all(&corev1.PersistentVolumeList{}) {
		_, err := w.volumes.Reconcile(ctx, wake.Request(object))
		failures = append(failures, err)
	}
	for _, object := range w.all(&stowagev1alpha1.NodeRecyclingList{}) {
		_, err := w.volumes.Reconcile(ctx, wake.Request(object))
		failures = append(failures, err)
	}
	for _, object := range w.all(&storagev1.VolumeAttachmentList{}) {
		_, err := w.attachments.Reconcile(ctx, wake.Request(object))
		failures = append(failures, err)
	}
	for _, object := range w.all(&storagev1.StorageClassList{}) {
		_, err := w.storageClasses.Reconcile(ctx, wake.Request(object))
		failures = append(failures, err)
	}
	for _, object := range w.all(&storagev1.VolumeAttributesClassList{}) {
		_, err := w.classes.Reconcile(ctx, wake.Request(object))
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// feedWrites feeds the index after a write. Nothing else changes an object within a round.
func (w *world) feedWrites() {
	if w.fedAfter != w.written {
		w.feedIndex()
	}
}

// feedIndex does what the informer does.
func (w *world) feedIndex() {
	w.fedAfter = w.written
	objects := append(w.all(&corev1.PersistentVolumeList{}), w.all(&corev1.PersistentVolumeClaimList{})...)
	there := map[types.UID]bool{}
	for _, object := range objects {
		there[object.GetUID()] = true
	}
	for _, object := range w.fed {
		if !there[object.GetUID()] {
			w.feed(object, true)
		}
	}
	for _, object := range objects {
		w.feed(object, false)
	}
	w.fed = objects
}

func (w *world) feed(object client.Object, gone bool) {
	switch typed := object.(type) {
	case *corev1.PersistentVolumeClaim:
		w.claims.UpdatePreBound(typed, gone)
	case *corev1.PersistentVolume:
		if gone {
			w.claims.Index.Remove(typed.Name)
		} else {
			w.claims.Index.Put(typed)
		}
	}
}
