package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	utilexec "k8s.io/utils/exec"

	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

func TestWhatACopyLeftIsRemovedInSlicesBeforeItIsMadeAgain(t *testing.T) {
	base := realDir(t)
	store := NewStore(base, filesystem.FileSystems{})
	store.Slice = time.Nanosecond
	source := layout.Volume{Path: filepath.Join(base, "fast"), Name: "pvc-1", Bytes: mi}
	if err := store.Make(t.Context(), source, listing()); err != nil {
		t.Fatal(err)
	}
	const files = 5
	left := filepath.Join(source.Path, ".new-pvc-2")
	for i := range files {
		if err := errors.Join(os.MkdirAll(left, 0o700), os.WriteFile(filepath.Join(left, fmt.Sprint(i)), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	volume := layout.Volume{Path: source.Path, Name: "pvc-2", Bytes: mi, Copy: true, Source: &source}
	for range files {
		err := store.Make(t.Context(), volume, listing())
		if !errors.Is(err, filetree.ErrUnfinished) {
			t.Fatalf("got %v", err)
		}
	}
	if err := store.Make(t.Context(), volume, listing()); err != nil {
		t.Error(err)
	}
}

func TestACopyWithoutItsSourceIsNotMadeEmpty(t *testing.T) {
	base := realDir(t)
	for name, image := range map[string]*layout.Image{"a directory": nil, "a device": {}, "a file system": {FSType: "ext4"}} {
		volume := layout.Volume{Path: base, Name: "pvc-1", Bytes: mi, Copy: true, Image: image}
		err := NewStore(base, filesystem.NewFileSystems(utilexec.New())).Make(t.Context(), volume, listing())
		if made, _ := filepath.Glob(filepath.Join(base, "*pvc-1*")); !errors.Is(err, layout.ErrQueued) || len(made) > 0 {
			t.Errorf("%s: it got %v, and there is %v", name, err, made)
		}
	}
}
