package foreign_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/foreign"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/record"
)

// ownDisks are the agent's own: one is in use.
type ownDisks struct{}

func (ownDisks) Serves(context.Context, *corev1.PersistentVolume) bool { return false }
func (ownDisks) Drivers() []string                                     { return []string{"gce.stowage.dev"} }
func (ownDisks) Watch(context.Context, func()) error                   { return nil }

func (ownDisks) InUse() ([]corev1.UniqueVolumeName, error) {
	return []corev1.UniqueVolumeName{"kubernetes.io/csi/gce.stowage.dev^own"}, nil
}

// objects are CSIDriver objects by name; nil where they can't be read.
type objects map[string]*storagev1.CSIDriver

func (o objects) CSIDriver(_ context.Context, name string) (*storagev1.CSIDriver, error) {
	object, known := o[name]
	if known && object == nil {
		return nil, errors.New("the cache isn't there yet")
	}
	return object, nil
}

func attaching(required bool) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{AttachRequired: &required}}
}

func of(driver, handle string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
		CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle},
	}}}
}

func TestWhichVolumesAreAttachedFirst(t *testing.T) {
	known := objects{"disk.example.com": attaching(true), "share.example.com": attaching(false), "unread.example.com": nil}
	disks := foreign.NewAttachable(ownDisks{}, foreign.New(foreign.Options{Objects: known}))
	for driver, want := range map[string]bool{
		"disk.example.com": true, "share.example.com": false, "unread.example.com": true, "without.example.com": true, "local.stowage.dev": false,
	} {
		if got := disks.Serves(t.Context(), of(driver, "a")); got != want {
			t.Errorf("%s: %t", driver, got)
		}
	}
	if disks.Serves(t.Context(), nil) {
		t.Error("a volume without an object is attached")
	}
	if got := disks.Drivers(); !slices.Contains(got, "disk.example.com") || !slices.Contains(got, "gce.stowage.dev") {
		t.Errorf("its drivers are %v", got)
	}
}

func TestStagedVolumesAreInUseAlsoBesideARecordThatCantBeRead(t *testing.T) {
	folders := record.Folders{Pods: t.TempDir(), Plugins: t.TempDir()}
	known := objects{"disk.example.com": attaching(true), "share.example.com": attaching(false)}
	for _, data := range []record.Data{
		{Driver: "disk.example.com", Handle: "a"},
		{Driver: "share.example.com", Handle: "b"},
		{Driver: "disk.example.com", Handle: "device", Device: "pv"},
		{Driver: "local.stowage.dev", Handle: "c"},
	} {
		if err := folders.EnsureStaging(data); err != nil {
			t.Fatal(err)
		}
	}
	spoilt := folders.Staged(record.Data{Driver: "disk.example.com", Handle: "spoilt"})
	if err := errors.Join(os.MkdirAll(filepath.Dir(spoilt), 0o700), os.WriteFile(spoilt, []byte("garbage"), 0o600)); err != nil {
		t.Fatal(err)
	}

	got, err := foreign.NewAttachable(ownDisks{}, foreign.New(foreign.Options{Folders: folders, Objects: known})).InUse()

	slices.Sort(got)
	want := []corev1.UniqueVolumeName{"kubernetes.io/csi/disk.example.com^a", "kubernetes.io/csi/disk.example.com^device", "kubernetes.io/csi/gce.stowage.dev^own"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("in use are %v (%v)", got, err)
	}
}
