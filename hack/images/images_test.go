package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
)

func TestTheSameTreeHasTheSameBytes(t *testing.T) {
	digest := func() string {
		files := userFiles()
		files.mergeFolders()
		files.link("/bin/sh", "dash")
		files.write("/bin/dash", 0o755, []byte("a shell"))
		layer, err := files.layer()
		if err != nil {
			t.Fatal(err)
		}
		hash, err := layer.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return hash.String()
	}
	first := digest()
	for range 5 {
		if again := digest(); again != first {
			t.Fatalf("%s, and then %s", first, again)
		}
	}
}

func TestWhatImagesShareIsALayerBelow(t *testing.T) {
	common, whole := tree{}, tree{}
	for _, files := range []tree{common, whole} {
		files.write("/bin/sh", 0o755, []byte("a shell"))
	}
	whole.write("/agnhost", 0o755, []byte("a program"))
	rest, all := whole.without(common)
	if _, there := rest["/agnhost"]; !all || !there || len(rest) != 1 {
		t.Errorf("beside %v it has %v", common, rest)
	}
	common.write("/bin/sh", 0o755, []byte("another shell"))
	if _, all := whole.without(common); all {
		t.Error("it is said to have a file that it has another content of")
	}
}

func TestWhatLiesInMergedFoldersIsInOnePlace(t *testing.T) {
	for name, want := range map[string]string{
		"/sbin/mkfs.ext4": "/usr/sbin/mkfs.ext4", "/usr/bin/lsblk": "/usr/bin/lsblk", "/binary": "/binary",
		"/lib64/ld-linux-x86-64.so.2": "/usr/lib64/ld-linux-x86-64.so.2", "/etc/mke2fs.conf": "/etc/mke2fs.conf",
	} {
		if got := place(name); got != want {
			t.Errorf("%s lies in %s, not %s", name, got, want)
		}
	}
}

func TestPackagesAreReadFromTheDockerfile(t *testing.T) {
	dockerfile, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	packages, err := packagesOf(string(dockerfile))
	if err != nil || !slices.Contains(packages, "e2fsprogs") || !slices.Contains(packages, "xfsprogs") {
		t.Errorf("%v: %v", packages, err)
	}
	const split = "FROM debian:x AS node-agent\nRUN apt-get update \\\n && apt-get install --yes one \\\n      two \\\n && rm x\n"
	if packages, err := packagesOf(split); err != nil || !slices.Equal(packages, []string{"one", "two"}) {
		t.Errorf("of two lines it read %v: %v", packages, err)
	}
	for _, other := range []string{"", "FROM debian:x AS node-agent\nRUN true\nFROM debian:x AS b\nRUN apt-get install c\n"} {
		if packages, err := packagesOf(other); err == nil {
			t.Errorf("from %q it read %v", other, packages)
		}
	}
}

func TestALibraryThatIsNotThereIsAnError(t *testing.T) {
	if found, err := machine.library("libc.so.6", nil); err != nil || filepath.Base(found) != "libc.so.6" {
		t.Errorf("it found %q, %v", found, err)
	}
	if found, err := machine.library("libstowage-none.so.1", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it found %q: %v", found, err)
	}
}

// machine has the packages that are installed here.
func TestTheToolsOfUpstreamsTestsAreGNUs(t *testing.T) {
	if _, err := os.Stat(busybox); err != nil {
		t.Skipf("NOT RUN: Debian's package busybox-static isn't installed: %v", err)
	}
	made, err := machine.tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"/bin/dd", "/bin/stat", "/bin/find", "/bin/bash", "/sbin/blockdev"} {
		if file := made.files[place(program)]; !file.mode.IsRegular() || len(file.content) == 0 {
			t.Errorf("%s is a link to %q", program, file.link)
		}
	}
	if shell := made.files[place("/bin/sh")]; shell.link != "bash" {
		t.Errorf("the shell is %q, which may lack words that the tests use", shell.link)
	}
	if _, hides := made.files[place("/bin/blockdev")]; hides {
		t.Error("busybox has a blockdev beside that of the package")
	}
	if applet := made.files[place("/bin/vi")]; applet.link != "busybox" {
		t.Errorf("vi is a link to %q", applet.link)
	}
}

var machine = sources{root: "/", arch: runtime.GOARCH}

func TestProgramsStartWithNothingButTheirImage(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: chroot needs root")
	}
	files := tree{}
	files.mergeFolders()
	if err := files.addPackages(machine, "e2fsprogs", "xfsprogs", "util-linux"); err != nil {
		t.Skipf("NOT RUN: %v", err)
	}
	root := t.TempDir()
	files.unpack(t, root)
	for program, question := range map[string]string{
		"/sbin/mkfs.ext4": "-V", "/sbin/fsck.ext4": "-V", "/sbin/mkfs.xfs": "-V", "/usr/sbin/xfs_growfs": "-V", "/sbin/blkid": "-V",
	} {
		command := exec.CommandContext(t.Context(), program, question)
		command.Path = program
		command.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		command.Dir, command.Err = "/", nil
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", program, err, output)
		}
	}
	if _, there := files["/etc/mke2fs.conf"]; !there {
		t.Error("mkfs.ext4 has no configuration")
	}
}

func TestTheNFSServersImageIsWhole(t *testing.T) {
	if modules, _ := filepath.Glob(nfsFolder); len(modules) == 0 {
		t.Skip("NOT RUN: Debian's package nfs-ganesha-vfs is not installed")
	}
	made, err := machine.nfsServer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/usr/bin/ganesha.nfsd", "/usr/sbin/rpcbind", "/etc/netconfig", "/usr/local/bin/run_nfs.sh"} {
		if _, there := made.files[name]; !there {
			t.Errorf("it has no %s", name)
		}
	}
}

// unpack writes the tree below a folder.
func (t tree) unpack(test *testing.T, root string) {
	test.Helper()
	for name, file := range t.withParents() {
		target := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(filepath.Join(root, place(name))), 0o755)
		switch {
		case file.mode.IsDir():
			err = errors.Join(err, os.MkdirAll(target, 0o755))
		case file.link != "":
			err = errors.Join(err, os.Symlink(file.link, target))
		default:
			err = errors.Join(err, os.WriteFile(target, file.content, file.mode))
		}
		if err != nil {
			test.Fatal(err)
		}
	}
}
