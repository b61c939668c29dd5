// Package ownership decides and sets which group may use the files of a pod's volume: the
// fsGroup of the pod's securityContext. It also computes the SELinux label of the files and
// the supplemental groups of the pod's processes. Volume types call it before a pod sees a
// volume.
//
// Decisions are pure, and separate from changes of files. It never touches the volume of a
// pod without an fsGroup.
package ownership

import (
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
)

// Permissions that a group gets, and with it the owner.
const (
	mayRead   = 0o440
	mayWrite  = 0o220
	mayPass   = 0o110
	groupRuns = 0o010
	anyRuns   = 0o111
)

// Group is a group that files are to belong to.
type Group struct {
	// ID is its number.
	ID int
	// Access is what it may do with them.
	Access mount.Access
	// OnMismatch: change nothing if the top directory is right. It is changed last, so all
	// below it was right, once.
	OnMismatch bool
}

// GroupOf is the fsGroup of a pod; false if it has none.
func GroupOf(pod *corev1.Pod, access mount.Access) (Group, bool) {
	if pod == nil || pod.Spec.SecurityContext == nil || pod.Spec.SecurityContext.FSGroup == nil {
		return Group{}, false
	}
	security := pod.Spec.SecurityContext
	policy := security.FSGroupChangePolicy
	return Group{
		ID: int(*security.FSGroup), Access: access,
		OnMismatch: policy != nil && *policy == corev1.FSGroupChangeOnRootMismatch,
	}, true
}

// IsForOneNode reports whether only the pods of one node can write a volume. A volume that
// other nodes may write gets no pod's group.
func IsForOneNode(volume *corev1.PersistentVolume) bool {
	for _, mode := range volume.Spec.AccessModes {
		if mode == corev1.ReadWriteOnce || mode == corev1.ReadWriteOncePod {
			return true
		}
	}
	return false
}

// DirMode is the mode that a directory has for the group, which new entries inherit. It takes
// no permission away.
func (g Group) DirMode(mode uint32) uint32 {
	return mode&allBits | g.bits() | mayPass | unix.S_ISGID
}

// fileMode is the mode that a file has for the group, which may run what the owner or others
// may run.
func (g Group) fileMode(mode uint32) uint32 {
	wanted := mode&allBits | g.bits()
	if mode&anyRuns != 0 {
		wanted |= groupRuns
	}
	return wanted
}

// allBits are those of a mode that don't say what kind of file it is.
const allBits = 0o7777

func (g Group) bits() uint32 {
	if g.Access == mount.ReadOnly {
		return mayRead
	}
	return mayRead | mayWrite
}

// has reports whether a file needs no change. Devices are never changed.
func (g Group) has(stat *unix.Stat_t) bool {
	mine := int(stat.Gid) == g.ID
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFBLK, unix.S_IFCHR:
		return true
	case unix.S_IFLNK:
		return mine
	case unix.S_IFDIR:
		return mine && g.DirMode(stat.Mode) == stat.Mode&allBits
	default:
		return mine && g.fileMode(stat.Mode) == stat.Mode&allBits
	}
}
