package nodemanager

import (
	"context"
	"os"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// silent is a volume type whose server doesn't answer.
type silent struct {
	began chan struct{}
}

func (silent) Name() string                { return "example.com/silent" }
func (silent) CanHandle(volumes.Spec) bool { return true }
func (silent) Path(dir string) string      { return dir }

func (silent) IsPublished(mount.Table, volumes.Spec, string) (bool, error) { return false, nil }

func (s silent) Publish(ctx context.Context, _ volumes.Spec, dir string) error {
	if err := os.Mkdir(dir, poddir.DirMode); err != nil {
		return err
	}
	close(s.began)
	<-ctx.Done()
	return ctx.Err()
}

func (silent) Unpublish(_ context.Context, dir string) error { return volumes.RemoveEmptyDir(dir) }

func TestAPodThatIsDeletedWhileItsMountHangsGoesAtOnce(t *testing.T) {
	pod := nodetest.PodOnNode(nodetest.SomePod)
	api := clientWith(interceptor.Funcs{}, pod)
	server := silent{began: make(chan struct{})}
	bench := newBench(t, api, api, withTypes(server))
	if err := os.RemoveAll(bench.Tree.PodDir(nodetest.SomePod)); err != nil {
		t.Fatal(err)
	}
	if _, err := bench.Reconcile(t.Context(), nodetest.SomePod); err != nil {
		t.Fatal(err)
	}
	<-server.began

	if err := api.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if err := bench.settle(t); err != nil {
		t.Fatal(err)
	}

	if left, err := bench.Tree.HasPod(nodetest.SomePod); err != nil || left {
		t.Errorf("its directory is left: %v (%v)", left, err)
	}
}
