package guest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/stowage-dev/stowage/test/harness/owned"
)

// envtestDir is the folder of caches that a library of this program's wants as soon as
// it is loaded: on a node, where nothing can be written to that early, it must be there.
const envtestDir = "kubebuilder-envtest"

const endInterval = 500 * time.Millisecond

// Folder is where a test keeps everything.
type Folder struct{ root string }

func newFolder(name string) (Folder, error) {
	root, err := owned.Folder(name)
	if err != nil {
		return Folder{}, err
	}
	folder := Folder{root}
	for _, dir := range []string{folder.Logs(), folder.Memory(), folder.disks(), folder.ControlPlane(), filepath.Join(folder.caches(), envtestDir)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return Folder{}, err
		}
	}
	return folder, nil
}

// Logs is for what programs print. It is kept if the test fails.
func (f Folder) Logs() string { return filepath.Join(f.root, "logs") }

// Log is what a program prints.
func (f Folder) Log(program string) string { return filepath.Join(f.Logs(), program+".log") }

// Memory is in the machine's memory, and is gone with the test.
func (f Folder) Memory() string { return filepath.Join(f.root, "memory") }

// Disk is the image of a disk of so many bytes, which is empty at first and takes
// space as it is written to. It is gone with the test.
func (f Folder) Disk(name string, bytes int64) (string, error) {
	path := filepath.Join(f.disks(), name)
	image, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	return path, errors.Join(image.Truncate(bytes), image.Close())
}

// AwaitEnd waits until a signal ends the suite, which is a success from here on: the specs
// end as they would otherwise.
func (f Folder) AwaitEnd(ctx context.Context) error {
	if err := os.WriteFile(f.waiting(), nil, 0o600); err != nil {
		return err
	}
	ended := func(context.Context) (bool, error) { return !f.waits(), nil }
	return wait.PollUntilContextCancel(ctx, endInterval, true, ended)
}

func (f Folder) waiting() string { return filepath.Join(f.root, "waiting") }

func (f Folder) waits() bool {
	_, err := os.Stat(f.waiting())
	return err == nil
}

// Name distinguishes this test's run from all others of the machine.
func (f Folder) Name() string { return filepath.Base(f.root) }

// ControlPlane is for a control plane that the test starts. Its logs are kept, too.
func (f Folder) ControlPlane() string { return filepath.Join(f.root, "cluster") }

func (f Folder) disks() string { return filepath.Join(f.root, "disks") }

func (f Folder) caches() string { return filepath.Join(f.root, "caches") }

func (f Folder) keepLogs() error {
	err := os.Rename(filepath.Join(f.ControlPlane(), "logs"), filepath.Join(f.Logs(), "cluster"))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(f.caches()), os.RemoveAll(f.ControlPlane()), os.RemoveAll(f.disks()), os.RemoveAll(f.Memory()))
}
