package apidata_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/content"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/apidata"
)

func TestMain(m *testing.M) { mounttest.Main(m) }

// eachMedium runs a test for volumes on disk and in memory.
func eachMedium(t *testing.T, test func(t *testing.T, v volume)) {
	t.Helper()
	for name, inMemory := range map[string]bool{"on disk": false, "in memory": true} {
		t.Run(name, func(t *testing.T) { test(t, newVolume(t, inMemory)) })
	}
}

// volume is one of a pod on this machine.
type volume struct {
	apidata.Plugin
	dir string
}

func newVolume(t *testing.T, inMemory bool) volume {
	t.Helper()
	mounttest.NeedsRoot(t)
	parent, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mount.UnmountBelow(mount.Kernel{}, parent) })
	kind := apidata.Type{Name: "example.com/shown", InMemory: inMemory, Is: func(corev1.Volume) bool { return true }}
	return volume{apidata.New(mount.Kernel{}, kind), filepath.Join(parent, "shown")}
}

// showing is a volume that shows one file.
func showing(data string) volumes.Spec {
	return volumes.Spec{
		Volume: corev1.Volume{Name: "shown"}, Pod: &corev1.Pod{},
		Files: content.Files{"etc/file": {Data: []byte(data), Mode: 0o644}},
	}
}

func (v volume) publish(t *testing.T, data string) {
	t.Helper()
	if err := v.Publish(t.Context(), showing(data), v.dir); err != nil {
		t.Fatal(err)
	}
}

func (v volume) mustBePublished(t *testing.T, want bool) {
	t.Helper()
	table, err := mount.Kernel{}.Table()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := v.IsPublished(table, showing(""), v.dir); err != nil || got != want {
		t.Errorf("published is %v (%v), want %v", got, err, want)
	}
}

func (v volume) mustShow(t *testing.T, want string) {
	t.Helper()
	if got, err := os.ReadFile(filepath.Join(v.Path(v.dir), "etc", "file")); err != nil || string(got) != want {
		t.Errorf("it shows %q (%v), want %q", got, err, want)
	}
}

func TestAVolumeHasItsFilesUntilItIsUnpublished(t *testing.T) {
	eachMedium(t, func(t *testing.T, v volume) {
		v.mustBePublished(t, false)
		for range 2 {
			v.publish(t, "first")
			v.mustBePublished(t, true)
			v.mustShow(t, "first")
		}
		if err := v.Refresh(t.Context(), showing("second"), v.dir); err != nil {
			t.Fatal(err)
		}
		v.mustShow(t, "second")
		for range 2 {
			if err := v.Unpublish(t.Context(), v.dir); err != nil {
				t.Fatal(err)
			}
		}
		v.mustBePublished(t, false)
		if _, err := os.Lstat(v.dir); !os.IsNotExist(err) {
			t.Errorf("its directory is still there (%v)", err)
		}
	})
}

func TestAnEmptyVolumeIsPublished(t *testing.T) {
	eachMedium(t, func(t *testing.T, v volume) {
		spec := showing("")
		spec.Files = content.Files{}
		if err := v.Publish(t.Context(), spec, v.dir); err != nil {
			t.Fatal(err)
		}
		v.mustBePublished(t, true)
	})
}

func TestAVolumeWithoutContentIsNotPublished(t *testing.T) {
	eachMedium(t, func(t *testing.T, v volume) {
		spec := showing("")
		spec.Files = nil
		if err := v.Publish(t.Context(), spec, v.dir); err == nil {
			t.Error("it isn't an error")
		}
		v.mustBePublished(t, false)
	})
}

func TestPublishingContinuesAfterACrash(t *testing.T) {
	tests := map[string]func(t *testing.T, v volume){
		"a directory": func(*testing.T, volume) {},
		"a mount":     func(t *testing.T, v volume) { mounttest.Tmpfs(t, v.dir) },
		"a version, not shown": func(t *testing.T, v volume) {
			v.publish(t, "first")
			if err := os.Rename(filepath.Join(v.dir, "..data"), filepath.Join(v.dir, "..data_tmp")); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, cut := range tests {
		t.Run(name, func(t *testing.T) {
			v := newVolume(t, true)
			if err := os.Mkdir(v.dir, 0o750); err != nil {
				t.Fatal(err)
			}
			cut(t, v)
			v.mustBePublished(t, false)
			v.publish(t, "first")
			v.mustBePublished(t, true)
			v.mustShow(t, "first")
		})
	}
}

//proves:objects/fsGroup
func TestFilesBelongToTheGroupOfThePod(t *testing.T) {
	eachMedium(t, func(t *testing.T, v volume) {
		spec := showing("data")
		spec.Files = content.Files{"file": {Mode: 0o600}}
		spec.Pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: new(int64(2000))}
		if err := v.Publish(t.Context(), spec, v.dir); err != nil {
			t.Fatal(err)
		}
		mustBeOf(t, filepath.Join(v.dir, "file"), 0o640, 2000)
		mustBeOf(t, v.dir, 0o755|os.ModeDir, 0)
	})
}

func TestWhatWasMountedIntoAVolumeIsUnmountedAndKept(t *testing.T) {
	eachMedium(t, func(t *testing.T, v volume) {
		v.publish(t, "first")
		precious, inside := t.TempDir(), filepath.Join(v.dir, "inside")
		canary := filepath.Join(precious, "canary")
		for _, err := range []error{os.WriteFile(canary, nil, 0o600), os.Mkdir(inside, 0o755)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := (mount.Kernel{}).Bind(mounttest.Open(t, precious), inside, mount.ReadWrite); err != nil {
			t.Fatal(err)
		}
		if err := v.Refresh(t.Context(), showing("second"), v.dir); err != nil {
			t.Error(err)
		}
		if err := v.Unpublish(t.Context(), v.dir); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(canary); err != nil {
			t.Error(err)
		}
	})
}

func TestAFileInItsPlaceIsAnErrorAndStays(t *testing.T) {
	eachMedium(t, func(t *testing.T, v volume) {
		if err := os.WriteFile(v.dir, []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
		if v.Publish(t.Context(), showing(""), v.dir) == nil || v.Unpublish(t.Context(), v.dir) == nil {
			t.Error("it isn't an error")
		}
		if data, err := os.ReadFile(v.dir); err != nil || string(data) != "kept" {
			t.Errorf("it holds %q (%v)", data, err)
		}
	})
}

//proves:secret/shown
func TestErrorsDoNotContainData(t *testing.T) {
	needsDisk(t)
	v := newVolume(t, true)
	if err := os.Mkdir(v.dir, 0o750); err != nil {
		t.Fatal(err)
	}
	err := v.Refresh(t.Context(), showing("hunter2"), v.dir)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}
