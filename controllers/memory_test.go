package controllers

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/program"
	"github.com/stowage-dev/stowage/internal/uses"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// memory is a cluster in memory: it plays thousands of scenarios in the time that
// an API server needs for a few. It gives objects what an API server does: a UID,
// an age and defaults.
type memory struct {
	client.WithWatch
	made int
	// accepted is how many writes were carried out, those of specs included.
	accepted int
}

func newMemory() *memory {
	scheme, err := program.Scheme()
	Expect(err).NotTo(HaveOccurred())
	m := &memory{}
	// No spec in memory reads managed fields, and the tracker that keeps them maps all kinds again for each write.
	tracker := clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	m.WithWatch = interceptor.NewClient(clientfake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(tracker).WithStatusSubresource(
		&corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}, &corev1.Node{}, &stowagev1alpha1.StorageBackend{},
		&storagev1.VolumeAttachment{}, &snapshotv1.VolumeSnapshot{}, &snapshotv1.VolumeSnapshotContent{},
	).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.CreateOption) error {
			m.complete(object)
			return m.count(to.Create(ctx, object, options...))
		},
		Delete: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return m.count(to.Delete(ctx, object, options...))
		},
		Patch: func(ctx context.Context, to client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return m.count(to.Patch(ctx, object, patch, options...))
		},
		SubResourcePatch: func(ctx context.Context, to client.Client, name string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			return m.count(to.SubResource(name).Patch(ctx, object, patch, options...))
		},
	})
	return m
}

// newWorldIn makes a world of a cluster in memory.
func newWorldIn(cluster *memory) *world {
	w := &world{
		faultyClient: newFaultyClient(cluster, cluster),
		scope:        reconciler.ClusterScope,
		storage:      fake.New(),
		clock:        clocktesting.NewFakePassiveClock(time.Now()),
	}
	w.restart()
	return w
}

func (m *memory) count(err error) error {
	if err == nil {
		m.accepted++
	}
	return err
}

func (m *memory) complete(object client.Object) {
	m.made++
	object.SetUID(types.UID(fmt.Sprintf("uid-%d", m.made)))
	object.SetCreationTimestamp(metav1.NewTime(time.Unix(int64(m.made), 0)))
	setDefaults(object)
}

func setDefaults(object client.Object) {
	switch typed := object.(type) {
	case *corev1.PersistentVolumeClaim:
		typed.Status.Phase = corev1.ClaimPending
		typed.Spec.VolumeMode = ptr.To(ptr.Deref(typed.Spec.VolumeMode, corev1.PersistentVolumeFilesystem))
	case *corev1.PersistentVolume:
		typed.Status.Phase = corev1.VolumePending
		typed.Spec.VolumeMode = ptr.To(ptr.Deref(typed.Spec.VolumeMode, corev1.PersistentVolumeFilesystem))
	case *storagev1.StorageClass:
		typed.ReclaimPolicy = ptr.To(ptr.Deref(typed.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete))
		typed.VolumeBindingMode = ptr.To(ptr.Deref(typed.VolumeBindingMode, storagev1.VolumeBindingImmediate))
	}
}

// Without the admission plug-in, which protects volumes as they are created.
func TestAVolumeIsProtectedByTheWriteThatBindsIt(t *testing.T) {
	for name, tie := range map[string]func(*corev1.PersistentVolume, *corev1.PersistentVolumeClaim){
		"of a free volume": func(*corev1.PersistentVolume, *corev1.PersistentVolumeClaim) {},
		"of a volume that a person tied to the claim": func(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
			binder.BindVolume(pv, claim)
		},
	} {
		t.Run(name, func(t *testing.T) {
			RegisterFailHandler(func(message string, _ ...int) { t.Fatal(message) })
			w := newWorldIn(newMemory())
			claim, pv := Claim(), Volume("disk")
			w.create(claim)
			tie(pv, claim)
			w.create(pv)
			w.feedWrites()
			if _, err := w.claims.Reconcile(t.Context(), wake.Request(claim)); err != nil {
				t.Fatal(err)
			}
			w.get(pv)
			if !binder.TiedTo(pv, claim) || !slices.Contains(pv.Finalizers, uses.VolumeProtection) {
				t.Errorf("its claim is %+v, and its finalizers are %v", pv.Spec.ClaimRef, pv.Finalizers)
			}
		})
	}
}
