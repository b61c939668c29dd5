package mounting

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// MountPointMode is that of directories which something is mounted on.
const MountPointMode = 0o750

// OpenOnly opens a file to know it by, and to mount it.
const OpenOnly = unix.O_PATH | unix.O_NOFOLLOW

// HashOf is the hexadecimal SHA-256 of a text: the name of a file for a handle, which is anything.
func HashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// NumberAt is major:minor of the device at a path; "" if there is none.
func NumberAt(path string) string {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFBLK {
		return ""
	}
	return fmt.Sprintf("%d:%d", unix.Major(stat.Rdev), unix.Minor(stat.Rdev))
}

// PluginName is the volume type's, for directories and for devices.
const PluginName = "kubernetes.io/csi"

// Adopted is a volume that an agent of the layout before mounted.
type Adopted struct {
	Handle string
	// Volume is the name of the volume object, and of the volume's directories in pods'.
	Volume string
}

// ErrReadOnly is why a volume is abnormal whose file system is read-only after errors.
var ErrReadOnly = errors.New("the kernel stopped writing to the volume's file system, after errors that its log tells of: " +
	"delete the volume's pods, so that it is checked before it is mounted again")

// GlobalMount is the last folder of staging paths, as of a kubelet's.
const GlobalMount = "globalmount"
