package filesystem

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	utilexec "k8s.io/utils/exec"

	"github.com/stowage-dev/stowage/internal/device"
)

// limitedTo are file systems of a process that has so much memory.
func limitedTo(bytes int64, exec utilexec.Interface) FileSystems {
	return FileSystems{exec: exec, checks: newChecks(func() int64 { return bytes })}
}

// ext4In makes an image with an ext4 that is to be checked.
func ext4In(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image")
	for _, command := range [][]string{
		{"truncate", "-s", "4G", path},
		{"mkfs.ext4", "-q", "-F", "-N", "4000000", path},
		{"debugfs", "-w", "-R", "set_super_value state 2", path}, // with errors: all of it is checked
	} {
		if _, err := exec.LookPath(command[0]); err != nil {
			t.Skipf("NOT RUN: %s is missing: install e2fsprogs", command[0])
		}
		if output, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	return path
}

func TestACheckThatNeedsMoreMemoryThanMostGetsMore(t *testing.T) {
	path := ext4In(t)
	if err := limitedTo(32*mebibyte, utilexec.New()).Check(t.Context(), path, "ext4"); err != nil {
		t.Error(err)
	}
}

// A check of 4 GiB has a thread for each processor. In 2 MiB not one of them had a stack.
func TestStacksOfThreadsTakeNoMemoryFromACheck(t *testing.T) {
	path := ext4In(t)
	if err := limitedTo(4*mebibyte, utilexec.New()).Check(t.Context(), path, "ext4"); err != nil {
		t.Error(err)
	}
}

func TestACheckThatNeedsMoreMemoryThanThereIsSaysWhatToDo(t *testing.T) {
	path := ext4In(t)
	err := limitedTo(2*mebibyte, utilexec.New()).Check(t.Context(), path, "ext4")
	if err == nil || errors.Is(err, device.ErrDamaged) || !strings.Contains(err.Error(), "memory limit") {
		t.Fatalf("got %v", err)
	}
	if err := limitedTo(0, utilexec.New()).Check(t.Context(), path, "ext4"); err != nil {
		t.Errorf("with all the memory of the machine: %v", err)
	}
}

func TestWhileALargeCheckRunsAnotherOneIsTriedLater(t *testing.T) {
	path := ext4In(t)
	systems := limitedTo(32*mebibyte, utilexec.New())
	systems.checks.large <- struct{}{}
	if err := systems.Check(t.Context(), path, "ext4"); !errors.Is(err, ErrChecking) {
		t.Errorf("got %v", err)
	}
	<-systems.checks.large
	for range smallChecks {
		systems.checks.small <- struct{}{}
	}
	if err := systems.Check(t.Context(), path, "ext4"); !errors.Is(err, ErrChecking) {
		t.Errorf("got %v", err)
	}
}

func TestTheMemoryOfAProcessIsThatOfItsControlGroups(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct {
		groups string
		files  map[string]string
		want   int64
	}{
		"version 2":          {"0::/kubepods/pod\n", map[string]string{"kubepods/pod/memory.max": "536870912\n", "kubepods/memory.max": "max\n"}, 512 * mebibyte},
		"the pod's":          {"0::/kubepods/pod/c\n", map[string]string{"kubepods/pod/c/memory.max": "max\n", "kubepods/pod/memory.max": "1048576\n"}, mebibyte},
		"a namespace":        {"0::/\n", map[string]string{"memory.max": "1048576\n"}, mebibyte},
		"version 1":          {"4:memory:/a\n3:cpu:/b\n0::/\n", map[string]string{"memory/a/memory.limit_in_bytes": "1048576\n"}, mebibyte},
		"another's root":     {"4:memory:/a\n", map[string]string{"memory/memory.limit_in_bytes": "1048576\n"}, mebibyte},
		"none":               {"0::/a\n", map[string]string{"a/memory.max": "max\n"}, 0},
		"none, of version 1": {"4:memory:/\n", map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"nothing":            {"", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			groups := filepath.Join(root, "cgroup")
			put(t, groups, test.groups)
			for path, content := range test.files {
				put(t, filepath.Join(root, path), content)
			}
			if got := memoryLimitIn(groups, root); got != test.want {
				t.Errorf("got %d", got)
			}
		})
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}
