package effect_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/effect"
)

func TestALineIsAboutWhatItsObjectsName(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "data"}}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}, Spec: corev1.PersistentVolumeSpec{
		ClaimRef: &corev1.ObjectReference{Namespace: "team-a", Name: "data"},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			VolumeAttributes: map[string]string{stowagev1alpha1.BackendAttribute: "disks"},
		}},
	}}
	attachment := &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{
		NodeName: "node-1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pvc-1")},
	}}
	ofVolume := []any{"claim", "team-a/data", "volume", "pvc-1", "backend", "disks"}
	for name, example := range map[string]struct {
		objects []runtime.Object
		want    []any
	}{
		"a claim that isn't bound":        {[]runtime.Object{claim}, []any{"claim", "team-a/data"}},
		"a claim and its volume":          {[]runtime.Object{claim, pv}, ofVolume},
		"a volume":                        {[]runtime.Object{pv}, ofVolume},
		"an attachment":                   {[]runtime.Object{attachment}, []any{"volume", "pvc-1", "node", "node-1"}},
		"an attachment and its volume":    {[]runtime.Object{attachment, pv}, append(slices.Clone(ofVolume), "node", "node-1")},
		"an attachment whose volume went": {[]runtime.Object{attachment, (*corev1.PersistentVolume)(nil)}, []any{"volume", "pvc-1", "node", "node-1"}},
		"a pod": {
			[]runtime.Object{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web"}, Spec: corev1.PodSpec{NodeName: "node-1"}}},
			[]any{"node", "node-1", "pod", "team-a/web"},
		},
		"a reference to a claim": {
			[]runtime.Object{&corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "team-a", Name: "data"}},
			[]any{"claim", "team-a/data"},
		},
		"nothing": {[]runtime.Object{nil, &corev1.Secret{}}, nil},
	} {
		if got := effect.About(example.objects...); !slices.Equal(got, example.want) {
			t.Errorf("%s: got %v, want %v", name, got, example.want)
		}
	}
}

func TestALineHasADurationIfItsBeginningIsKnown(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	ctx := logr.NewContext(t.Context(), log)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}

	effect.Log(ctx, effect.Mounted, time.Time{}, node)
	effect.Log(ctx, effect.Mounted, time.Now().Add(-time.Hour), node)
	// Clocks of machines differ.
	effect.Log(ctx, effect.Mounted, time.Now().Add(time.Hour), node)

	for i, want := range []string{`"node"="node-1"`, `"took"="1h0m0`, `"took"="0s"`} {
		if !strings.Contains(lines[i], want) || i == 0 && strings.Contains(lines[i], "took") {
			t.Errorf("line %d is %s", i, lines[i])
		}
	}
}

func TestAnErrorIsRepeatedUntilItChangesOrItsObjectIsReconciled(t *testing.T) {
	var fails error
	reported := effect.Reported[string](reconcile.TypedFunc[string](func(context.Context, string) (reconcile.Result, error) { return ctrl.Result{}, fails }))
	away, terminal := errors.New("the storage is away"), reconcile.TerminalError(errors.New("no such backend"))
	for i, step := range []struct {
		key      string
		err      error
		repeated bool
	}{
		{"a", away, false},
		{"a", away, true},
		{"b", away, false},
		{"a", terminal, false},
		{"a", terminal, true},
		{"a", nil, false},
		{"a", terminal, false},
		{"b", away, true},
	} {
		fails = step.err
		_, err := reported.Reconcile(t.Context(), step.key)
		if effect.IsRepeated(err) != step.repeated || !errors.Is(err, step.err) {
			t.Errorf("step %d: got %v, repeated %v", i, err, effect.IsRepeated(err))
		}
		if errors.Is(err, reconcile.TerminalError(nil)) != errors.Is(step.err, terminal) {
			t.Errorf("step %d: the controller would take it for another kind", i)
		}
	}
}

func TestAnEffectIsCountedWithItsDurationIfThatIsKnown(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	if err := effect.Serve(registry); err != nil {
		t.Fatal(err)
	}
	effect.Count("tested", time.Time{})
	effect.Log(t.Context(), "tested", time.Now().Add(-time.Hour))
	effect.Count("tested", time.Now().Add(time.Hour))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*dto.Metric{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if metric.GetLabel()[0].GetValue() == "tested" {
				found[family.GetName()] = metric
			}
		}
	}
	if count := found["stowage_effects_total"].GetCounter().GetValue(); count != 3 {
		t.Errorf("%f effects are counted", count)
	}
	took := found["stowage_effect_seconds"].GetHistogram()
	if took.GetSampleCount() != 2 || took.GetSampleSum() < 3600 || took.GetSampleSum() > 3700 {
		t.Errorf("the durations are %v", took)
	}
}
