package csi_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-dev/stowage/internal/mount"
)

// A mount by hand keeps a volume staged, but no pod from going.
func TestAVolumeThatSomethingElseHadIsUnstagedLater(t *testing.T) {
	for name, change := range localKinds {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, "ext4", imageBytes)
			spec := n.spec(change)
			source, err := os.Open(n.publish(t, "pod", spec))
			if err != nil {
				t.Fatal(err)
			}
			byHand := filepath.Join(n.dir, "by-hand")
			if err = os.Mkdir(byHand, 0o750); spec.IsBlock() {
				byHand = filepath.Join(byHand, "device")
				err = os.WriteFile(byHand, nil, 0o600)
			}
			if err == nil {
				err = n.mounter.Bind(source, byHand, mount.ReadWrite)
			}
			source.Close()
			if err != nil {
				t.Fatal(err)
			}

			n.unpublish(t, "pod", spec)
			n.plugin.Sweep(t.Context())
			if len(n.table(t).Below(n.staged())) == 0 {
				t.Error("it isn't staged, and in use")
			}
			if err := n.mounter.Unmount(byHand); err != nil {
				t.Fatal(err)
			}
			n.plugin.Sweep(t.Context())
			n.mustBeClean(t)
		})
	}
}

func TestAVolumeThatAPodHasStaysStaged(t *testing.T) {
	for name, change := range localKinds {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, "ext4", imageBytes)
			spec := n.spec(change)
			n.publish(t, "pod", spec)
			n.restart(t)
			n.plugin.Sweep(t.Context())
			if there, err := n.pluginFor(spec).IsPublished(n.table(t), spec, n.at(t, "pod")); !there || err != nil {
				t.Errorf("got %v, %v", there, err)
			}
			n.unpublish(t, "pod", spec)
			n.mustBeClean(t)
		})
	}
}
