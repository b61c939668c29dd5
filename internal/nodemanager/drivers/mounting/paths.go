package mounting

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// MountPointMode is the mode of directories on which something is mounted.
const MountPointMode = 0o750

// OpenOnly opens a file to identify it, and to bind it.
const OpenOnly = unix.O_PATH | unix.O_NOFOLLOW

// HashOf returns the hexadecimal SHA-256 of a text. It names files after handles, which may
// contain anything.
func HashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// NumberAt returns major:minor of the device at a path; "" if there is none.
func NumberAt(path string) string {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFBLK {
		return ""
	}
	return fmt.Sprintf("%d:%d", unix.Major(stat.Rdev), unix.Minor(stat.Rdev))
}

// PluginName is the name of the volume type, for directories and for devices.
const PluginName = "kubernetes.io/csi"

// Adopted is a volume that an agent of the previous layout mounted.
type Adopted struct {
	Handle string
	// Volume is the name of the volume object, and of the volume's directories in those of pods.
	Volume string
}

// ErrReadOnly is why a volume is abnormal whose file system the kernel made read-only after
// errors.
var ErrReadOnly = errors.New("the kernel stopped writing to the volume's file system, after errors that are in its log: " +
	"delete the volume's pods, so that it is checked before it is mounted again")

// GlobalMount is the last folder of staging paths, as with a kubelet.
const GlobalMount = "globalmount"
