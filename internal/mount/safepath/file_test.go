package safepath_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

func TestAFileIsOpenedWithoutFollowingALink(t *testing.T) {
	dir := mounttest.TempDir(t)
	mounttest.WriteFile(t, dir, "image", "data")
	mounttest.MakeDir(t, dir, "folder")
	if err := os.Symlink("image", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	top := mounttest.Open(t, dir)
	image, err := safepath.OpenFileAt(top, "image")
	if err != nil {
		t.Fatal(err)
	}
	image.Close()
	for name, kind := range map[string]error{"link": safepath.ErrOutside, "missing": os.ErrNotExist, "../" + filepath.Base(dir) + "/image": safepath.ErrOutside} {
		if _, err := safepath.OpenFileAt(top, name); !errors.Is(err, kind) {
			t.Errorf("opening %s gave %v", name, err)
		}
	}
	if _, err := safepath.OpenFileAt(top, "folder"); err == nil {
		t.Error("a directory was taken for a file")
	}
}
