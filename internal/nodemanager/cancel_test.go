package nodemanager

import (
	"context"
	"os"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-dev/stowage/internal/mount"
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
	if err := os.Mkdir(dir, dirMode); err != nil {
		return err
	}
	close(s.began)
	<-ctx.Done()
	return ctx.Err()
}

func (silent) Unpublish(_ context.Context, dir string) error { return volumes.RemoveEmptyDir(dir) }

func TestAPodThatIsDeletedWhileItsMountHangsGoesAtOnce(t *testing.T) {
	pod := podOnNode(somePod)
	api := clientWith(interceptor.Funcs{}, pod)
	bench := newBench(t, api, api)
	if err := os.RemoveAll(bench.Tree.PodDir(somePod)); err != nil {
		t.Fatal(err)
	}
	server := silent{began: make(chan struct{})}
	bench.Volumes = volumes.Registry{server}
	bench.resolver.types = bench.Volumes
	if _, err := bench.Reconcile(t.Context(), somePod); err != nil {
		t.Fatal(err)
	}
	<-server.began

	if err := api.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if err := bench.settle(t); err != nil {
		t.Fatal(err)
	}

	if left, err := bench.Tree.HasPod(somePod); err != nil || left {
		t.Errorf("its directory is left: %v (%v)", left, err)
	}
}
