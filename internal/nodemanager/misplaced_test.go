package nodemanager

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
)

func TestAFileInThePlaceOfADirectoryStaysAndIsReported(t *testing.T) {
	for _, at := range []string{
		".", "volumes", "volumes/kubernetes.io~empty-dir", "volumes/kubernetes.io~empty-dir/scratch",
		"volumeDevices", "volumeDevices/kubernetes.io~csi", "volume-subpaths", "volume-subpaths/scratch", "containers", "containers/main",
	} {
		t.Run(at, func(t *testing.T) {
			pod := nodetest.Deleting(nodetest.PodOnNode(nodetest.SomePod), false)
			api := clientWith(interceptor.Funcs{}, pod)
			bench := newBench(t, api, api)
			file := filepath.Join(bench.Tree.PodDir(nodetest.SomePod), at)
			if err := errors.Join(os.RemoveAll(file), os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, []byte("hello"), 0o600)); err != nil {
				t.Fatal(err)
			}

			if err := bench.settle(t); err != nil {
				t.Fatal(err)
			}

			if content, err := os.ReadFile(file); err != nil || string(content) != "hello" {
				t.Errorf("the file holds %q (%v)", content, err)
			}
			if recorded := len(bench.Events.(*events.FakeRecorder).Events); recorded == 0 {
				t.Error("no event was recorded")
			}
		})
	}
}
