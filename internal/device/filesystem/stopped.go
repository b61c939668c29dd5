package filesystem

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/stowage-dev/stowage/internal/mount"
)

// HasStopped reports whether the kernel has stopped writing to a writable file system because
// of errors. The mount table doesn't show that before Linux 6.15, for example late in 6.1:
// there, ext4's count of errors does.
func HasStopped(mounted mount.Point) bool {
	if mounted.Access == mount.ReadOnly {
		return false
	}
	return mounted.SystemAccess == mount.ReadOnly || mounted.StopsOnErrors && HasErrors(mounted.Device)
}

// HasErrors reports whether ext4 counted errors of the file system on a device, given as
// major:minor. A check of the file system resets the count.
func HasErrors(device string) bool {
	block, err := filepath.EvalSymlinks("/sys/dev/block/" + device)
	if err != nil {
		return false
	}
	count, err := os.ReadFile("/sys/fs/ext4/" + filepath.Base(block) + "/errors_count")
	return err == nil && strings.TrimSpace(string(count)) != "0"
}
