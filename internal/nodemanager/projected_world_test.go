package nodemanager

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/content"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// boards is a volume type with directories of plain files.
type boards struct {
	volumes.Plugin
	mu sync.Mutex
	// refreshes counts them; err is what comes of them.
	refreshes int
	err       error
	// held, if it isn't nil, holds up what is published until it is closed.
	held chan struct{}
}

func (*boards) Name() string                                  { return "kubernetes.io/board" }
func (*boards) Path(dir string) string                        { return dir }
func (*boards) CanHandle(spec volumes.Spec) bool              { return content.IsProjected(spec.Volume) }
func (*boards) Unpublish(_ context.Context, dir string) error { return os.RemoveAll(dir) }
func (*boards) IsPublished(_ mount.Table, _ volumes.Spec, dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, "key"))
	return err == nil, nil
}

func (b *boards) Publish(_ context.Context, spec volumes.Spec, dir string) error {
	if b.held != nil {
		<-b.held
	}
	return errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "key"), spec.Files["key"].Data, 0o600))
}

func (b *boards) Refresh(ctx context.Context, spec volumes.Spec, dir string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refreshes++
	if b.err != nil {
		return b.err
	}
	return b.Publish(ctx, spec, dir)
}

// origin is Objects with one configMap, and tokens that are renewed after an hour.
type origin struct {
	Objects
	value     string
	err       error
	clock     *clocktesting.FakeClock
	forgotten []types.UID
}

func (s *origin) ConfigMap(context.Context, *corev1.Pod, string) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{Data: map[string]string{"key": s.value}}, s.err
}

func (s *origin) Token(context.Context, *corev1.Pod, *corev1.ServiceAccountTokenProjection) (content.Token, error) {
	return content.Token{Value: s.value, Renew: s.clock.Now().Add(time.Hour)}, s.err
}

func (s *origin) Forget(pod types.UID) { s.forgotten = append(s.forgotten, pod) }

// projecting is a reconciler of one pod with a volume that projects the source.
type projecting struct {
	*Reconciler
	api    client.Client
	source *origin
	boards *boards
	clock  *clocktesting.FakeClock
	events *events.FakeRecorder
}

func newProjecting(t *testing.T, volume corev1.VolumeSource) *projecting {
	t.Helper()
	pod := nodetest.PodOnNode(nodetest.SomePod)
	pod.Spec.Volumes = []corev1.Volume{{Name: "board", VolumeSource: volume}}
	clock := clocktesting.NewFakeClock(time.Now())
	s := &projecting{
		api: clientWith(interceptor.Funcs{}, pod), clock: clock, source: &origin{value: "one", clock: clock},
		boards: &boards{}, events: events.NewFakeRecorder(100),
	}
	tree, err := poddir.NewTree(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.restart(tree)
	return s
}

// restart replaces the reconciler by one that knows nothing.
func (s *projecting) restart(tree poddir.Tree) {
	s.Reconciler = NewReconciler(Options{
		NodeName: "n1", Tree: tree, Mounter: &mounttest.Fake{}, Volumes: volumes.Registry{s.boards}, Objects: s.source,
		Client: s.api, Live: s.api, Events: s.events, Clock: s.clock,
	})
}

// settle reconciles the pod until no operation runs for it, and returns when it is to be
// reconciled again.
func (s *projecting) settle(t *testing.T) time.Duration {
	t.Helper()
	var again time.Duration
	for range 4 {
		result, err := s.Reconcile(t.Context(), nodetest.SomePod)
		if err != nil {
			t.Fatal(err)
		}
		again = result.RequeueAfter
		s.operations.Wait()
	}
	return again
}

// board is the content of the volume.
func (s *projecting) board() string {
	data, err := os.ReadFile(filepath.Join(s.Tree.VolumeDir(nodetest.SomePod, poddir.Location{Plugin: s.boards.Name(), Name: "board"}), "key"))
	if err != nil {
		return "nothing"
	}
	return string(data)
}

// ready is the reason of the pod's condition.
func (s *projecting) ready(t *testing.T) string {
	t.Helper()
	pod := &corev1.Pod{}
	if err := s.api.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, pod); err != nil {
		t.Fatal(err)
	}
	for _, condition := range pod.Status.Conditions {
		return condition.Reason
	}
	return ""
}

// recorded is the events since the last call.
func (s *projecting) recorded() []string {
	var recorded []string
	for len(s.events.Events) > 0 {
		recorded = append(recorded, <-s.events.Events)
	}
	return recorded
}

func fromConfigMap() corev1.VolumeSource {
	return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}
}
