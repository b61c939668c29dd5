package quota_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/quota"
)

func TestADirectoryIsHeldToItsInodes(t *testing.T) {
	onEach(t, func(t *testing.T, disk string) {
		const most = 50
		dir := mounttest.Open(t, mkdir(t, disk, "pvc-1"))
		limits := quota.Limits{Bytes: 8 * mebibyte, Inodes: most}
		if err := quota.Begin(dir, "pvc-1", limits); err != nil {
			t.Fatal(err)
		}
		files := 0
		for ; files < 10*most; files++ {
			if err := write(filepath.Join(dir.Name(), fmt.Sprint(files)), 0); isFull(err) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if files != most-1 { // one is the directory's
			t.Errorf("%d files were made beside the directory", files)
		}
		if usage := usageOf(t, dir); usage.Limit != limits || usage.Inodes != most {
			t.Errorf("got %+v", usage)
		}
		if err := write(filepath.Join(disk, "beside"), 0); err != nil {
			t.Errorf("the limit holds beside it: %v", err)
		}
	})
}

// withoutQuotas are file systems, each with how many inodes go with a quarter of 320 MiB:
// whether it has quotas doesn't matter.
var withoutQuotas = map[string]struct {
	program []string
	want    int64
}{
	"ext4": {[]string{"mkfs.ext4", "-q", "-N", "40960"}, 40960 / 4},
	// At most that part of its blocks is for inodes, of 512 bytes each.
	"xfs":   {[]string{"mkfs.xfs", "-q", "-i", "maxpct=10,size=512"}, 320 * mebibyte / 10 / 512 / 4},
	"btrfs": {[]string{"mkfs.btrfs", "-q"}, 0},
}

func TestInodesGoWithBytesInProportion(t *testing.T) {
	for kind, how := range withoutQuotas {
		t.Run(kind, func(t *testing.T) {
			disk := mounttest.Open(t, newDisk(t, kind, how.program, ""))
			// A file system keeps some of the disk for itself.
			if got := share(t, disk, 80*mebibyte); got < how.want || got > how.want*5/4 {
				t.Errorf("%d inodes go with a quarter of the disk, want %d", got, how.want)
			}
			if got := share(t, disk, mebibyte); how.want != 0 && got != 1024 {
				t.Errorf("%d inodes go with a MiB", got)
			}
			if got := share(t, disk, 0); got != 0 {
				t.Errorf("%d inodes go with nothing", got)
			}
		})
	}
}

func TestTheShareOfInodesStaysWhileTheDiskIsFilled(t *testing.T) {
	for kind, how := range withoutQuotas {
		t.Run(kind, func(t *testing.T) {
			disk := mounttest.Open(t, newDisk(t, kind, how.program, ""))
			before := share(t, disk, 80*mebibyte)
			fill(t, filepath.Join(disk.Name(), "file"), 200*mebibyte)
			if after := share(t, disk, 80*mebibyte); after != before {
				t.Errorf("it was %d, and is %d", before, after)
			}
		})
	}
}

func fill(t *testing.T, path string, bytes int64) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := unix.Fallocate(int(file.Fd()), 0, 0, bytes); err != nil {
		t.Fatal(err)
	}
}

func share(t *testing.T, disk *os.File, bytes int64) int64 {
	t.Helper()
	inodes, err := quota.ShareOfInodes(disk, bytes)
	if err != nil {
		t.Fatal(err)
	}
	return inodes
}
