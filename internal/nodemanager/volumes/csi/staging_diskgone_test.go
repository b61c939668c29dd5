package csi_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// loseStaged makes the staged disk look gone, as makeGone does.
func (n *kubeletDisk) loseStaged() {
	n.Helper()
	paths, err := filepath.Glob(filepath.Join(n.dir, "agent", "csi", "*", "disk"))
	if len(paths) != 1 {
		n.Fatalf("records: %v (%v)", paths, err)
	}
	record, err := os.ReadFile(paths[0])
	n.must(err)
	changed := strings.Replace(string(record), `"sequence":"`, `"sequence":"9`, 1)
	if changed == string(record) {
		n.Skip("NOT RUN: this kernel gives disks no sequence number")
	}
	n.must(os.WriteFile(paths[0], []byte(changed), 0o600))
}

//proves:csi/staging
func TestAStagedDiskThatIsGoneIsTakenFromPodsThatUseIt(t *testing.T) {
	for name, kind := range diskKinds {
		t.Run(name, func(t *testing.T) {
			n := newKubeletDisk(t, imageBytes)
			spec := n.spec(kind)
			n.must(n.stage(spec), n.show(spec, "pod"))
			used, err := os.Open(n.target("pod"))
			n.must(err)
			defer used.Close()
			if err := n.hide("pod"); name == "as a file system" && err == nil {
				t.Error("a disk that is there was taken from a pod that has it open")
			}
			n.must(n.show(spec, "pod"))
			n.loseStaged()
			if err := n.staged.Check(t.Context(), "pvc-1", ""); !errors.Is(err, volumes.ErrGone) {
				t.Errorf("got %v", err)
			}
			if err := n.show(spec, "late"); !errors.Is(err, volumes.ErrGone) {
				t.Errorf("a pod that comes late got %v", err)
			}
			if err := n.unstage(); !errors.Is(err, volumes.ErrInUse) {
				t.Errorf("unstaging it under a pod gave %v", err)
			}
			n.must(n.hide("pod"), n.unstage(), used.Close())
			n.mustBeEmpty()
		})
	}
}

//proves:csi/staging
func TestAStagedDiskThatIsBackReplacesWhatIsLeftOfTheOldOne(t *testing.T) {
	for name, kind := range diskKinds {
		t.Run(name, func(t *testing.T) {
			n := newKubeletDisk(t, imageBytes)
			spec := n.spec(kind)
			n.must(n.stage(spec), n.show(spec, "old"))
			n.loseStaged()
			n.must(n.stage(spec))
			if n.table().IsMountPoint(n.target("old")) {
				t.Error("the old one is still mounted")
			}
			n.must(n.staged.Check(t.Context(), "pvc-1", ""), n.show(spec, "new"), n.hide("old"), n.hide("new"), n.unstage())
			n.mustBeEmpty()
		})
	}
}
