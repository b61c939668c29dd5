package filesystem

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/stowage-dev/stowage/internal/mount"
)

// HasStopped says whether the kernel writes no more to a file system that may be written,
// because it found errors. Before Linux 6.15 there are kernels, such as late ones of 6.1,
// whose mount table doesn't show that: of ext4, the errors themselves are asked for.
func HasStopped(mounted mount.Point) bool {
	if mounted.Access == mount.ReadOnly {
		return false
	}
	return mounted.SystemAccess == mount.ReadOnly || mounted.StopsOnErrors && HasErrors(mounted.Device)
}

// HasErrors says whether ext4 noted errors of the file system on a device, by its
// major:minor. A check of the file system ends them.
func HasErrors(device string) bool {
	block, err := filepath.EvalSymlinks("/sys/dev/block/" + device)
	if err != nil {
		return false
	}
	count, err := os.ReadFile("/sys/fs/ext4/" + filepath.Base(block) + "/errors_count")
	return err == nil && strings.TrimSpace(string(count)) != "0"
}
