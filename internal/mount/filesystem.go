package mount

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// FileSystem implements Mounter.
func (Kernel) FileSystem(system FileSystem, target string) error {
	settings := append([]Setting{{"source", system.Source}}, system.Settings...)
	if system.Access == ReadOnly {
		settings = append(settings, Setting{Key: "ro"})
		// What the mount table shows of a mount is its own, not its file system's.
		system.Attributes |= unix.MOUNT_ATTR_RDONLY
	}
	tree, err := Create(system.Type, settings, system.Attributes)
	if err != nil {
		return fmt.Errorf("mounting %s: %w", system.Source, err)
	}
	defer unix.Close(tree)
	if system.Mode != 0 {
		if err := os.Chmod(fmt.Sprintf("/proc/self/fd/%d", tree), system.Mode); err != nil {
			return fmt.Errorf("setting the mode of a new mount of %s: %w", system.Source, err)
		}
	}
	return Attach(tree, target)
}

// attributes are options of a mount, and what they set after what they clear.
var attributes = map[string]struct{ set, clear int }{
	"nosuid":      {unix.MOUNT_ATTR_NOSUID, 0},
	"suid":        {0, unix.MOUNT_ATTR_NOSUID},
	"nodev":       {unix.MOUNT_ATTR_NODEV, 0},
	"dev":         {0, unix.MOUNT_ATTR_NODEV},
	"noexec":      {unix.MOUNT_ATTR_NOEXEC, 0},
	"exec":        {0, unix.MOUNT_ATTR_NOEXEC},
	"noatime":     {unix.MOUNT_ATTR_NOATIME, unix.MOUNT_ATTR__ATIME},
	"relatime":    {unix.MOUNT_ATTR_RELATIME, unix.MOUNT_ATTR__ATIME},
	"atime":       {unix.MOUNT_ATTR_RELATIME, unix.MOUNT_ATTR__ATIME},
	"strictatime": {unix.MOUNT_ATTR_STRICTATIME, unix.MOUNT_ATTR__ATIME},
	"nodiratime":  {unix.MOUNT_ATTR_NODIRATIME, 0},
	"diratime":    {0, unix.MOUNT_ATTR_NODIRATIME},
}

// SetAttribute applies a mount option to the attributes of a mount. It reports whether the
// option is one of a mount, and not of its file system.
func SetAttribute(before int, option string) (after int, known bool) {
	attribute, known := attributes[option]
	return before&^attribute.clear | attribute.set, known
}
