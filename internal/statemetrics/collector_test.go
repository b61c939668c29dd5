package statemetrics_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/program"
	"github.com/stowage-dev/stowage/internal/statemetrics"
)

const end = 1_800_000_000

func volume(name, driver, backend string, phase corev1.PersistentVolumePhase) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{}
	pv.Name, pv.Status.Phase = name, phase
	if phase == corev1.VolumeReleased { // its window ends later, the longer its name is
		pv.Status.Reason = "UndeletableUntil" + time.Unix(end+int64(len(name)), 0).UTC().Format(time.RFC3339)
	}
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeAttributes: map[string]string{stowagev1alpha1.BackendAttribute: backend}}
	return pv
}

func backendNamed(name string, ready metav1.ConditionStatus) *stowagev1alpha1.StorageBackend {
	of := &stowagev1alpha1.StorageBackend{}
	of.Name = name
	of.Status.Conditions = []metav1.Condition{{Type: stowagev1alpha1.ReadyCondition, Status: ready}}
	return of
}

// filled is a cache of volumes.
type filled struct{ cache.Informer }

func (f filled) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return f.Informer, nil
}

// withVolumes has the volumes among some objects.
func withVolumes(t *testing.T, objects ...client.Object) filled {
	t.Helper()
	source := cachetesting.NewFakeControllerSource()
	for _, object := range objects {
		if pv, isVolume := object.(*corev1.PersistentVolume); isVolume {
			source.Add(pv)
		}
	}
	informer := toolscache.NewSharedIndexInformer(source, &corev1.PersistentVolume{}, 0, toolscache.Indexers{})
	go informer.Run(t.Context().Done())
	if !toolscache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("it has no volumes")
	}
	return filled{informer}
}

func served(t *testing.T, calls interceptor.Funcs, informers statemetrics.Informers, objects ...client.Object) *prometheus.Registry {
	t.Helper()
	scheme, err := program.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(calls).Build()
	if err := statemetrics.Register(registry, cached, informers); err != nil {
		t.Fatal(err)
	}
	return registry
}

func TestVolumesAndBackendsAreCounted(t *testing.T) {
	objects := []client.Object{
		backendNamed("disks", metav1.ConditionTrue), backendNamed("share", metav1.ConditionFalse),
		volume("a", stowagev1alpha1.LocalDriver, "disks", corev1.VolumeBound),
		volume("bb", stowagev1alpha1.LocalDriver, "disks", corev1.VolumeReleased),
		volume("ccc", stowagev1alpha1.LocalDriver, "disks", corev1.VolumeReleased),
		volume("d", stowagev1alpha1.NFSDriver, "a name that a person wrote", corev1.VolumeReleased),
		volume("e", "foreign.example.com", "disks", corev1.VolumeBound),
	}
	registry := served(t, interceptor.Funcs{}, withVolumes(t, objects...), objects...)
	want := `# HELP stowage_backend_ready 1 if the StorageBackend's condition Ready is True, else 0.
# TYPE stowage_backend_ready gauge
stowage_backend_ready{backend="disks"} 1
stowage_backend_ready{backend="share"} 0
# HELP stowage_retained_bytes Capacity of the volumes in their undelete window.
# TYPE stowage_retained_bytes gauge
stowage_retained_bytes{backend="disks"} 2.147483648e+09
stowage_retained_bytes{backend="share"} 0
# HELP stowage_retained_first_deadline_timestamp_seconds When the first undelete window of a backend ends, in seconds since 1970.
# TYPE stowage_retained_first_deadline_timestamp_seconds gauge
stowage_retained_first_deadline_timestamp_seconds{backend="disks"} 1.800000002e+09
# HELP stowage_retained_volumes Volumes in their undelete window: their claims are deleted, and their data is still kept.
# TYPE stowage_retained_volumes gauge
stowage_retained_volumes{backend="disks"} 2
stowage_retained_volumes{backend="share"} 0
# HELP stowage_volumes PersistentVolumes of a backend, by phase.
# TYPE stowage_volumes gauge
stowage_volumes{backend="",phase="Released"} 1
stowage_volumes{backend="disks",phase="Bound"} 1
stowage_volumes{backend="disks",phase="Released"} 2
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestACacheThatCannotBeReadIsAnErrorOfTheScrape(t *testing.T) {
	broken := errors.New("the cache is not started")
	registry := served(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return broken }}, withVolumes(t))
	if _, err := registry.Gather(); err == nil || !strings.Contains(err.Error(), broken.Error()) {
		t.Errorf("got %v", err)
	}
}

func TestVolumesAreNotCountedBeforeTheCacheHasThem(t *testing.T) {
	source := cachetesting.NewFakeControllerSource()
	registry := served(t, interceptor.Funcs{}, filled{toolscache.NewSharedIndexInformer(source, &corev1.PersistentVolume{}, 0, toolscache.Indexers{})})
	if _, err := registry.Gather(); err == nil || !strings.Contains(err.Error(), "has not begun") {
		t.Errorf("got %v", err)
	}
}
