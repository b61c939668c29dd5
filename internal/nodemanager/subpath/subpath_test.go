package subpath_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/subpath"
)

func TestMain(m *testing.M) { mounttest.Main(m) }

// place is a volume, and the folder in which parts of it are mounted.
type place struct {
	t              *testing.T
	volume, folder string
}

func newPlace(t *testing.T) place {
	t.Helper()
	mounttest.NeedsRoot(t)
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mount.UnmountBelow(mount.Kernel{}, base); err != nil {
			t.Error(err)
		}
	})
	at := place{t: t, volume: filepath.Join(base, "volume"), folder: filepath.Join(base, "volume-subpaths", "data")}
	at.must(os.Mkdir(at.volume, 0o777), os.Chmod(at.volume, 0o777), os.MkdirAll(filepath.Dir(at.folder), 0o750))
	return at
}

func (p place) must(errs ...error) {
	p.t.Helper()
	if err := errors.Join(errs...); err != nil {
		p.t.Fatal(err)
	}
}

// part is a path in the volume, for container main.
func (p place) part(path string) subpath.Part {
	return subpath.Part{Path: path, Written: "subPath " + path, Target: filepath.Join(p.folder, "main", "0")}
}

func (p place) show(part subpath.Part) error {
	p.t.Helper()
	return subpath.Mount(mount.Kernel{}, mounttest.Open(p.t, p.volume), part)
}

func (p place) inspect(part subpath.Part) subpath.State {
	p.t.Helper()
	table, err := mount.Kernel{}.Table()
	p.must(err)
	return subpath.Inspect(table, p.volume, part.Target)
}

func (p place) remove() {
	p.t.Helper()
	p.must(subpath.Remove(mount.Kernel{}, p.folder))
	if _, err := os.Lstat(p.folder); !os.IsNotExist(err) {
		p.t.Errorf("the folder is still there (%v)", err)
	}
}

func (p place) write(path, content string) string {
	p.t.Helper()
	path = filepath.Join(p.volume, path)
	p.must(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600))
	return path
}

//proves:every/subPath
func TestADirectoryOfAVolumeIsMadeMountedAndKept(t *testing.T) {
	at := newPlace(t)
	part := at.part("logs/today")
	if state := at.inspect(part); state != subpath.Missing {
		t.Errorf("before: %v", state)
	}
	for range 2 {
		at.must(at.show(part))
	}
	if state := at.inspect(part); state != subpath.Mounted {
		t.Errorf("then: %v", state)
	}
	at.must(os.WriteFile(filepath.Join(part.Target, "hello"), nil, 0o600))
	table, err := mount.Kernel{}.Table()
	at.must(err)
	if mounts := table.Below(at.folder); len(mounts) != 1 {
		t.Errorf("mounted: %+v", mounts)
	}
	for range 2 {
		at.remove()
	}
	if _, err := os.Stat(filepath.Join(at.volume, "logs", "today", "hello")); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(filepath.Join(at.volume, "logs")); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("it was made with mode %v (%v)", info.Mode(), err)
	}
}

//proves:every/subPath
func TestFilesAndSocketsAreMountedAsTheyAre(t *testing.T) {
	at := newPlace(t)
	at.write("etc/file", "hello")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(at.volume, "socket"))
	at.must(err)
	defer listener.Close()
	at.must(unix.Mknod(filepath.Join(at.volume, "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	kinds := map[string]os.FileMode{"etc/file": 0, "socket": os.ModeSocket, "null": os.ModeDevice | os.ModeCharDevice, "etc": os.ModeDir}
	for path, kind := range kinds {
		part := at.part(path)
		at.must(at.show(part))
		if info, err := os.Stat(part.Target); err != nil || info.Mode().Type() != kind {
			t.Errorf("%s is %v (%v)", path, info.Mode(), err)
		}
	}
	at.remove()
}

func TestTheFileOfAVersionIsMountedThroughTheVolumesOwnSymlinks(t *testing.T) {
	at := newPlace(t)
	at.write("..v1/key", "old")
	at.must(os.Symlink("..v1", filepath.Join(at.volume, "..data")), os.Symlink("..data/key", filepath.Join(at.volume, "key")))
	part := at.part("key")
	part.Fixed = true
	at.must(at.show(part))
	at.write("..v2/key", "new")
	at.must(os.Symlink("..v2", filepath.Join(at.volume, "..new")), os.Rename(filepath.Join(at.volume, "..new"), filepath.Join(at.volume, "..data")))
	if state := at.inspect(part); state != subpath.Mounted {
		t.Errorf("with a new version beside it: %v", state)
	}
	at.must(os.RemoveAll(filepath.Join(at.volume, "..v1")))
	if got, err := os.ReadFile(part.Target); err != nil || string(got) != "old" {
		t.Errorf("it shows %q (%v)", got, err)
	}
	if state := at.inspect(part); state != subpath.Stale {
		t.Errorf("without the old version: %v", state)
	}
	at.must(at.show(part))
	if got, err := os.ReadFile(part.Target); err != nil || string(got) != "new" || at.inspect(part) != subpath.Mounted {
		t.Errorf("it then shows %q (%v)", got, err)
	}
	at.remove()
}

func TestAPartOfAVolumeThatWasMountedAnewIsStale(t *testing.T) {
	at := newPlace(t)
	part := at.part("logs")
	at.must(at.show(part))
	mounttest.Tmpfs(t, at.volume)
	if state := at.inspect(part); state != subpath.Stale {
		t.Errorf("it is %v", state)
	}
	at.must(at.show(part))
	if state := at.inspect(part); state != subpath.Mounted {
		t.Errorf("then it is %v", state)
	}
	at.remove()
}

//proves:every/subPath
func TestAReadOnlyPartIsNotWrittenAndNoPartIsMadeInAReadOnlyVolume(t *testing.T) {
	at := newPlace(t)
	part := at.part("logs")
	part.Access = mount.ReadOnly
	at.must(at.show(part))
	if err := os.Mkdir(filepath.Join(part.Target, "new"), 0o700); !errors.Is(err, unix.EROFS) {
		t.Errorf("writing gave %v", err)
	}
	at.remove()

	view := filepath.Join(filepath.Dir(at.volume), "view")
	at.must(os.Mkdir(view, 0o750), mount.Kernel{}.Bind(mounttest.Open(t, at.volume), view, mount.ReadOnly))
	at.volume = view
	if err := at.show(at.part("missing")); !errors.Is(err, unix.EROFS) || !strings.Contains(err.Error(), "subPath missing isn't in the volume") {
		t.Errorf("making it gave %v", err)
	}
	at.must(at.show(at.part("logs")))
	if err := os.Mkdir(filepath.Join(at.part("logs").Target, "new"), 0o700); !errors.Is(err, unix.EROFS) {
		t.Errorf("writing gave %v", err)
	}
	at.remove()
}

func TestAPathThatLeadsOutOrIsMissingIsAnErrorWithoutTheSecret(t *testing.T) {
	at := newPlace(t)
	at.write("file", "")
	at.must(os.Symlink("/etc", filepath.Join(at.volume, "hunter2")), os.Symlink("missing", filepath.Join(at.volume, "hunter3")))
	tests := map[string]string{
		"hunter2":        "leads out of the volume",
		"hunter2/passwd": "leads out of the volume",
		"hunter3":        "leads nowhere",
		"file/below":     "passes through a file",
		"../volume":      "relative to the volume",
		"a/../b":         "relative to the volume",
		"/etc":           "relative to the volume",
	}
	for path, want := range tests {
		part := at.part(path)
		part.Written = "subPathExpr $(PASSWORD)"
		err := at.show(part)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), part.Written) || strings.Contains(err.Error(), path) {
			t.Errorf("%s gave %v", path, err)
		}
	}
	fixed := at.part("missing")
	fixed.Fixed = true
	if err := at.show(fixed); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a fixed volume gave %v", err)
	}
	at.remove()
}

func TestWhatLiesWhereOnlyMountPointsShouldStays(t *testing.T) {
	at := newPlace(t)
	kept := filepath.Join(at.folder, "main", "0", "kept")
	at.must(os.MkdirAll(filepath.Dir(kept), 0o750), os.WriteFile(kept, nil, 0o600))
	if err := subpath.Remove(mount.Kernel{}, at.folder); err == nil {
		t.Error("nothing is said of it")
	}
	if err := at.show(at.part("logs")); err == nil {
		t.Error("it was mounted over")
	}
	at.must(os.Rename(kept, filepath.Join(at.folder, "main", "1")))
	at.remove() // an empty file is a mount point, whose mount a crash prevented
}

func TestTheContainersThatAskForPartsOfAVolume(t *testing.T) {
	mounts := []corev1.VolumeMount{{Name: "other", SubPath: "x"}, {Name: "data"}, {Name: "data", SubPath: "logs"}, {Name: "data", SubPathExpr: "$(POD)"}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers:      []corev1.Container{{Name: "first", VolumeMounts: mounts}},
		Containers:          []corev1.Container{{Name: "main"}},
		EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", VolumeMounts: mounts[2:]}}},
	}}
	var got []string
	for _, wanted := range subpath.Of(pod, "data") {
		got = append(got, wanted.Container.Name+" "+string(rune('0'+wanted.Index))+" "+wanted.Written())
	}
	want := "first 2 subPath logs, first 3 subPathExpr $(POD), debug 0 subPath logs, debug 1 subPathExpr $(POD)"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %s", strings.Join(got, ", "))
	}
}
