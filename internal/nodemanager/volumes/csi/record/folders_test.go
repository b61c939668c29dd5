package record

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// folders are those of a node, with one record of each kind, and files where folders could be.
func folders(t *testing.T) (f Folders, ofPods, staged string) {
	t.Helper()
	root := t.TempDir()
	f = Folders{Pods: filepath.Join(root, "pods"), Plugins: filepath.Join(root, "plugins")}
	ofPods = filepath.Join(f.Pods, "pod-1", "volumes", "kubernetes.io~csi", "pv-1", dataFile)
	staged = filepath.Join(f.Plugins, "csi.example.com", "hash", dataFile)
	stray := []string{
		filepath.Join(f.Pods, "file"), filepath.Join(f.Pods, "pod-2", "volumes"),
		filepath.Join(f.Plugins, "file"), filepath.Join(f.Plugins, "csi.example.com", "file"),
	}
	for _, path := range append(stray, ofPods, staged) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return f, ofPods, staged
}

func TestRecordsAreFoundBesideFiles(t *testing.T) {
	f, wantOfPods, wantStaged := folders(t)
	if found, err := f.AllOfPods(); err != nil || !slices.Equal(found, []string{wantOfPods}) {
		t.Errorf("of pods: %v, %v", found, err)
	}
	if found, err := f.AllStaged(); err != nil || !slices.Equal(found, []string{wantStaged}) {
		t.Errorf("staged: %v, %v", found, err)
	}
	none := Folders{Pods: filepath.Join(f.Pods, "none"), Plugins: filepath.Join(f.Plugins, "none")}
	if found, err := none.AllOfPods(); err != nil || len(found) > 0 {
		t.Errorf("of no pods: %v, %v", found, err)
	}
}

func TestAFolderThatCanNotBeReadIsNotTakenForAnEmptyOne(t *testing.T) {
	f, _, _ := folders(t)
	// A symlink to itself can't be followed, even by root.
	for _, at := range []string{filepath.Join(f.Pods, "pod-3"), filepath.Join(f.Plugins, "csi.example.org")} {
		if err := os.Symlink(filepath.Base(at), at); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := f.AllOfPods(); err == nil {
		t.Errorf("of pods: %v", found)
	}
	if found, err := f.AllStaged(); err == nil {
		t.Errorf("staged: %v", found)
	}
}
