package atomicdir_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stowage-dev/stowage/internal/nodemanager/content"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/atomicdir"
)

// volume is a directory that is written to.
type volume struct {
	t     *testing.T
	path  string
	root  *os.Root
	group *int64
}

func newVolume(t *testing.T) *volume {
	t.Helper()
	path := t.TempDir()
	root, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return &volume{t: t, path: path, root: root}
}

func (v *volume) write(files content.Files) {
	v.t.Helper()
	if err := atomicdir.Write(v.t.Context(), v.root, files, v.group); err != nil {
		v.t.Fatal(err)
	}
}

// at is a path in the volume.
func (v *volume) at(path string) string { return filepath.Join(v.path, path) }

func (v *volume) must(errs ...error) {
	v.t.Helper()
	for _, err := range errs {
		if err != nil {
			v.t.Fatal(err)
		}
	}
}

// mustShow asserts that these files are all that a pod sees, and that nothing else lies
// in the volume.
func (v *volume) mustShow(files content.Files, besides ...string) {
	v.t.Helper()
	if got, want := v.seen(), describe(files); got != want {
		v.t.Errorf("a pod sees:\n%s\nwant:\n%s", got, want)
	}
	tops := append([]string{"..data", v.version()}, besides...)
	for path := range files {
		top, _, _ := strings.Cut(path, "/")
		tops = append(tops, top)
	}
	slices.Sort(tops)
	if got, want := v.names(), slices.Compact(tops); !slices.Equal(got, want) {
		v.t.Errorf("in the volume lie %q, want %q", got, want)
	}
}

func (v *volume) names() []string {
	v.t.Helper()
	entries, err := os.ReadDir(v.path)
	v.must(err)
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// version is the one that is shown.
func (v *volume) version() string {
	v.t.Helper()
	version, err := os.Readlink(v.at("..data"))
	v.must(err)
	return version
}

// seen is what a pod sees that goes through all names which aren't hidden.
func (v *volume) seen() string {
	v.t.Helper()
	var lines []string
	for _, name := range v.names() {
		if strings.HasPrefix(name, "..") {
			continue
		}
		// A symlink at the start isn't followed without the slash.
		top := v.at(name)
		if info, err := os.Stat(top); err == nil && info.IsDir() {
			top += "/"
		}
		v.must(filepath.WalkDir(top, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			line, err := v.line(path)
			lines = append(lines, line)
			return err
		}))
	}
	return strings.Join(lines, "\n")
}

func (v *volume) line(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	inside := strings.TrimPrefix(filepath.Clean(path), v.path+"/")
	return fmt.Sprintf("%s %#o %s", inside, info.Mode().Perm(), data), nil
}

func describe(files content.Files) string {
	lines := make([]string, 0, len(files))
	for _, path := range slices.Sorted(maps.Keys(files)) {
		lines = append(lines, fmt.Sprintf("%s %#o %s", path, files[path].Mode, files[path].Data))
	}
	return strings.Join(lines, "\n")
}

func text(data string) content.File { return content.File{Data: []byte(data), Mode: 0o644} }

// before and after are what a volume shows first, and then.
func before() content.Files {
	return content.Files{"a": text("1"), "etc/b": text("2"), "etc/deep/c": text("3"), "gone/d": text("4")}
}

func after() content.Files {
	return content.Files{"a": text("one"), "etc/b": text("2"), "etc/new/e": text("5"), "top": {Data: []byte("6"), Mode: 0o400}}
}

func TestFilesHaveTheKubeletsLayout(t *testing.T) {
	v := newVolume(t)
	if atomicdir.IsWritten(v.root) {
		t.Error("it counts as written before")
	}
	v.write(before())
	if !atomicdir.IsWritten(v.root) {
		t.Error("it doesn't count as written")
	}
	v.mustShow(before())
	for _, name := range []string{"a", "etc", "gone"} {
		if target, err := os.Readlink(v.at(name)); err != nil || target != "..data/"+name {
			t.Errorf("%s leads to %s (%v)", name, target, err)
		}
	}
	if version := v.version(); !strings.HasPrefix(version, "..2") || strings.Contains(version, "/") {
		t.Errorf("the version is %s", version)
	}
}

//proves:objects/updates
func TestFilesChangeAllAtOnceAndOldOnesGo(t *testing.T) {
	v := newVolume(t)
	v.write(before())
	v.write(after())
	v.mustShow(after())
	v.write(content.Files{})
	v.mustShow(content.Files{})
}

func TestAFileBecomesAFolderAndBack(t *testing.T) {
	v := newVolume(t)
	for _, files := range []content.Files{{"a": text("1")}, {"a/b": text("2")}, {"a": text("3")}} {
		v.write(files)
		v.mustShow(files)
	}
}

func TestNothingIsWrittenIfNothingChanged(t *testing.T) {
	v := newVolume(t)
	for _, files := range []content.Files{before(), {}, {"empty": text("")}} {
		v.write(files)
		version := v.version()
		watch := watchAll(t, syscall.IN_CREATE|syscall.IN_DELETE|syscall.IN_MODIFY|syscall.IN_MOVE|syscall.IN_ATTRIB, v.path, v.at(version))
		v.write(files)
		if seen := watch.events(t); seen > 0 || v.version() != version {
			t.Errorf("%d things happened to the volume", seen)
		}
	}
}

//proves:objects/items
func TestOwnersGroupsAndModesAreThoseThatWereAskedFor(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("NOT RUN: needs root, to give files away")
	}
	v := newVolume(t)
	v.group = new(int64(2000))
	v.write(content.Files{
		"token":   {Data: []byte("secret"), Mode: 0o600, Owner: new(int64(1000))},
		"etc/key": {Data: []byte("secret"), Mode: 0o400},
	})
	for path, want := range map[string]string{"token": "-rw-r----- 1000 2000", "etc/key": "-r--r----- 0 2000", "etc": "dgrwxr-xr-x 0 2000", "..data": "dgrwxr-xr-x 0 2000"} {
		info, err := os.Stat(v.at(path))
		v.must(err)
		stat := info.Sys().(*syscall.Stat_t)
		if got := fmt.Sprintf("%v %d %d", info.Mode(), stat.Uid, stat.Gid); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}

func TestAChangeOfModeOrOwnerAloneIsWritten(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("NOT RUN: needs root, to give files away")
	}
	v := newVolume(t)
	for _, file := range []content.File{text("1"), {Data: []byte("1"), Mode: 0o600}, {Data: []byte("1"), Mode: 0o600, Owner: new(int64(7))}} {
		v.write(content.Files{"a": file})
		info, err := os.Stat(v.at("a"))
		v.must(err)
		uid := int64(info.Sys().(*syscall.Stat_t).Uid)
		if info.Mode() != file.Mode || file.Owner != nil && uid != *file.Owner {
			t.Errorf("it is %v of %d", info.Mode(), uid)
		}
	}
}

func TestNamesThatItDidNotMakeStay(t *testing.T) {
	v := newVolume(t)
	v.must(os.Mkdir(v.at("nested"), 0o755), os.Symlink("..data/elsewhere", v.at("link")), os.WriteFile(v.at("file"), nil, 0o600))
	v.write(before())
	v.write(content.Files{"nested/a": text("1")})
	v.write(content.Files{})
	if got, want := v.names(), []string{v.version(), "..data", "file", "link", "nested"}; !slices.Equal(got, want) {
		t.Errorf("left: %q", got)
	}
}
