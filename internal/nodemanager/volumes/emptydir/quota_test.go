package emptydir_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/emptydir"
	"github.com/stowage-dev/stowage/internal/quota"
)

// withQuotas are the file systems that can keep project quotas, and how they are made.
var withQuotas = map[string][]string{
	"ext4": {"mkfs.ext4", "-q", "-O", "quota,project", "-E", "quotatype=usrquota:grpquota:prjquota"},
	"xfs":  {"mkfs.xfs", "-q"},
}

var withoutQuotas = map[string][]string{"ext4": {"mkfs.ext4", "-q"}, "xfs": {"mkfs.xfs", "-q"}}

// onDisks runs a test on a new disk of each kind.
func onDisks(t *testing.T, kinds map[string][]string, options string, test func(t *testing.T, dir string)) {
	for kind, program := range kinds {
		t.Run(kind, func(t *testing.T) {
			mounttest.NeedsRoot(t)
			disk := filepath.Dir(newDir(t))
			mountDisk(t, disk, kind, program, options)
			test(t, filepath.Join(disk, "scratch"))
		})
	}
}

func mountDisk(t *testing.T, target, kind string, program []string, options string) {
	t.Helper()
	if _, err := exec.LookPath(program[0]); err != nil {
		t.Skipf("NOT RUN: %s is missing: install e2fsprogs and xfsprogs", program[0])
	}
	image, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err == nil {
		err = image.Truncate(320 * mebibyte)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	if output, err := exec.CommandContext(t.Context(), program[0], append(program[1:], image.Name())...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	loop, err := loopdev.Attach(t.Context(), image, loopdev.ForFileSystem)
	if err != nil {
		t.Fatal(err)
	}
	defer loop.Close()
	err = unix.Mount(loop.Path(), target, kind, 0, options)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		t.Skipf("NOT RUN: this machine's kernel has no quotas on %s; make e2e-local has one that has", kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
}

//proves:emptyDir/sizeLimit-quota
func TestADiskWithQuotasKeepsAVolumeWithinItsLimit(t *testing.T) {
	onDisks(t, withQuotas, "prjquota", func(t *testing.T, dir string) {
		plugin, spec := emptydir.New(mount.Kernel{}), withGroup(specOf("", "8Mi"))
		if err := plugin.Publish(t.Context(), spec, dir); err != nil {
			t.Fatal(err)
		}
		mustBe(t, dir, someGroup, 0o2777)
		opened := mounttest.Open(t, dir)
		project, err := quota.ProjectOf(opened)
		if err != nil || project == 0 {
			t.Fatalf("its project is %d (%v)", project, err)
		}
		if usage, err := quota.Of(opened, project); err != nil || usage.Limit != (quota.Limits{Bytes: 8 * mebibyte}) {
			t.Errorf("got %+v (%v)", usage, err)
		}
		opened.Close()
		plugin.MeasureDue(t.Context(), time.Now(), func(types.UID) { t.Error("a pod was woken") })
		if err := plugin.Unpublish(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		if usage, err := quota.Of(mounttest.Open(t, filepath.Dir(dir)), project); err != nil || usage.Limit != (quota.Limits{}) {
			t.Errorf("left is %+v (%v)", usage, err)
		}
	})
}

//proves:emptyDir/sizeLimit
func TestADiskWithoutQuotasIsServedToo(t *testing.T) {
	onDisks(t, withoutQuotas, "", func(t *testing.T, dir string) {
		plugin, spec := emptydir.New(mount.Kernel{}), withGroup(specOf(corev1.StorageMediumDefault, "1Mi"))
		if err := plugin.Publish(t.Context(), spec, dir); err != nil {
			t.Fatal(err)
		}
		mustBe(t, dir, someGroup, 0o2777)
		if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, 2*mebibyte), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := plugin.Unpublish(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	})
}
