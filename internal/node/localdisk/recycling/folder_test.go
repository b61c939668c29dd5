package recycling_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/node/localdisk/recycling"
)

func confirmed(context.Context) error { return nil }

// scratchWith is a directory below a root, with files in it.
func scratchWith(t *testing.T, files ...string) (recycling.Folder, string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	scratch := filepath.Join(root, "scratch")
	for _, file := range files {
		put(t, filepath.Join(scratch, file))
	}
	return recycling.Folder{Root: root}, scratch
}

func put(t *testing.T, file string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func mustHold(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("%s holds %v, want %v", dir, names, want)
	}
}

func TestAnAttemptThatIsLateTakesNothingFromTheNextClaim(t *testing.T) {
	folder, scratch := scratchWith(t, "a", "b/c")
	late := func(ctx context.Context) error {
		if err := folder.Empty(ctx, scratch, "second", confirmed); err != nil {
			t.Error(err)
		}
		mustHold(t, scratch)
		put(t, filepath.Join(scratch, "next"))
		return nil
	}

	if err := folder.Empty(t.Context(), scratch, "first", late); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	mustHold(t, scratch, "next")
}

func TestAnAttemptThatIsCutOffIsFinishedByTheNext(t *testing.T) {
	for name, left := range map[string]string{
		"its directory was begun":   ".stowage-recycle/.new-first/",
		"its directory was made":    ".stowage-recycle/first/",
		"half of it was moved":      ".stowage-recycle/first/moved",
		"something else lies there": ".stowage-recycle/file",
	} {
		t.Run(name, func(t *testing.T) {
			folder, scratch := scratchWith(t, "a", left+"x")
			if err := folder.Empty(t.Context(), scratch, "second", confirmed); err != nil {
				t.Error(err)
			}
			mustHold(t, scratch)
		})
	}
}

func TestNothingIsMovedWithoutConfirmation(t *testing.T) {
	folder, scratch := scratchWith(t, "a")
	refused := errors.New("refused")
	if err := folder.Empty(t.Context(), scratch, "first", func(context.Context) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	mustHold(t, scratch, "a")
}

func TestWhatWasMovedAsideIsKeptWhenTheNextAttemptIsRefused(t *testing.T) {
	folder, scratch := scratchWith(t, "a", ".stowage-recycle/first/moved")
	refused := errors.New("refused")
	if err := folder.Empty(t.Context(), scratch, "second", func(context.Context) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	mustHold(t, scratch, ".stowage-recycle", "a")
	mustHold(t, filepath.Join(scratch, ".stowage-recycle", "first"), "moved")
}

func TestASymlinkInPlaceOfTheDirectoryToMoveToLeadsNowhere(t *testing.T) {
	folder, scratch := scratchWith(t, "a")
	elsewhere := t.TempDir()
	put(t, filepath.Join(elsewhere, "kept"))
	if err := os.Symlink(elsewhere, filepath.Join(scratch, ".stowage-recycle")); err != nil {
		t.Fatal(err)
	}
	if err := folder.Empty(t.Context(), scratch, "first", confirmed); err != nil {
		t.Error(err)
	}
	mustHold(t, elsewhere, "kept")
	mustHold(t, scratch)
}

func TestADirectoryThatIsEmptyIsEmptiedAgain(t *testing.T) {
	folder, scratch := scratchWith(t, "a")
	for range 2 {
		if err := folder.Empty(t.Context(), scratch, "first", confirmed); err != nil {
			t.Error(err)
		}
	}
	mustHold(t, scratch)
}

// A pod knows the name that attempts work in, and may take it.
func TestADirectoryIsEmptiedWhateverHasTheNameToWorkIn(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"a file":                func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a symlink to nowhere":  func(path string) error { return os.Symlink("nowhere", path) },
		"a symlink to a folder": func(path string) error { return os.Symlink("kept", path) },
		"a file in a folder": func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "first"), nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder, scratch := scratchWith(t, "kept/file")
			for _, taken := range []string{".stowage-recycle", ".new-.stowage-recycle"} {
				if err := put(filepath.Join(scratch, taken)); err != nil {
					t.Fatal(err)
				}
			}
			if err := folder.Empty(t.Context(), scratch, "first", confirmed); err != nil {
				t.Fatal(err)
			}
			mustHold(t, scratch)
		})
	}
}

func TestWhatEarlierAttemptsLeftGoesInSlicesToo(t *testing.T) {
	folder, scratch := scratchWith(t, "a", ".stowage-recycle/first/b", ".stowage-recycle/first/c", ".stowage-recycle/a")
	for folder.Slice = time.Nanosecond; ; {
		err := folder.Empty(t.Context(), scratch, "second", confirmed)
		for errors.Is(err, filetree.ErrUnfinished) {
			err = folder.Continue(t.Context(), scratch, "second")
		}
		if err != nil {
			t.Fatal(err)
		}
		if entries, err := os.ReadDir(scratch); err != nil || len(entries) == 0 {
			return
		}
	}
}

func TestWhatAnotherAttemptMovedStaysWhenOneContinues(t *testing.T) {
	folder, scratch := scratchWith(t, "next", ".stowage-recycle/first/a", ".stowage-recycle/second/b")
	if err := folder.Continue(t.Context(), scratch, "first"); err != nil {
		t.Error(err)
	}
	mustHold(t, scratch, ".stowage-recycle", "next")
	mustHold(t, filepath.Join(scratch, ".stowage-recycle"), "second")
}
