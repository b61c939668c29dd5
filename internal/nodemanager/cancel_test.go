package nodemanager

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

func TestWhatIsCancelledKeepsItsVolumeUntilItIsOver(t *testing.T) {
	for _, kind := range []Kind{Mounting, Refreshing} {
		t.Run(kind.String(), func(t *testing.T) {
			operations := NewOperations(clocktesting.NewFakeClock(time.Now()), nil)
			told, gone := make(chan struct{}), make(gate)
			operations.Do(t.Context(), Task{Kind: kind, Dir: "dir", Pod: somePod}, func(ctx context.Context) error {
				<-ctx.Done()
				close(told)
				return errors.Join(ctx.Err(), <-gone)
			})
			unmount := func(t *testing.T, work func(context.Context) error) Outcome {
				t.Helper()
				return operations.Do(t.Context(), Task{Kind: Unmounting, Dir: "dir", Pod: somePod}, work)
			}

			outcome := unmount(t, func(context.Context) error { t.Error("it was unmounted while it was mounted"); return nil })
			<-told
			if !outcome.Running || !operations.IsRunningAt("dir") {
				t.Errorf("its process isn't gone, and it has %+v", outcome)
			}
			gone <- nil
			operations.Wait()

			unmounted := false
			unmount(t, func(context.Context) error { unmounted = true; return nil })
			operations.Wait()
			if !unmounted {
				t.Error("it wasn't unmounted afterwards")
			}
		})
	}
}

func TestACancelledMountHasNotFailed(t *testing.T) {
	operations := NewOperations(clocktesting.NewFakeClock(time.Now()), nil)
	task := Task{Kind: Mounting, Dir: "dir", Pod: somePod}
	operations.Do(t.Context(), task, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	operations.Do(t.Context(), Task{Kind: Mounting, Dir: "another's", Pod: "pod-2"}, func(ctx context.Context) error { return ctx.Err() })
	operations.Cancel(somePod)
	operations.Wait()
	if outcome := operations.Do(t.Context(), task, func(context.Context) error { return nil }); !outcome.Running {
		t.Errorf("a pod that needs it after all has %+v", outcome)
	}
	operations.Wait()
}

func TestAnUnmountIsNeverCancelled(t *testing.T) {
	operations := NewOperations(clocktesting.NewFakeClock(time.Now()), nil)
	hangs := make(gate)
	operations.Do(t.Context(), Task{Kind: Unmounting, Dir: "dir", Pod: somePod}, func(ctx context.Context) error {
		err := <-hangs
		if ctx.Err() != nil {
			t.Error("it was cancelled")
		}
		return err
	})
	operations.Cancel(somePod)
	operations.Do(t.Context(), Task{Kind: Mounting, Dir: "dir", Pod: somePod}, func(context.Context) error {
		t.Error("it was mounted meanwhile")
		return nil
	})
	hangs <- nil
	operations.Wait()
}

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
