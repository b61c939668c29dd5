// Package ownership decides who may use the files of a pod's volume, and sees to it: it
// gives them to the group that the pod's securityContext names as fsGroup, and knows the
// SELinux label that they are to be seen with and the groups that the pod's processes
// are to have. Volume types call it before a pod sees a volume.
//
// What is decided is pure, and apart from what changes files. Nothing is done to volumes
// of pods that ask for nothing.
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

// Group is a group that files are given to.
type Group struct {
	// ID is its number.
	ID int
	// Access is what it may do with them.
	Access mount.Access
	// OnMismatch: nothing is done where the top directory is right. It becomes so last,
	// so all that it holds was right, once.
	OnMismatch bool
}

// GroupOf is the group that a pod's volumes are given to; false if it has none.
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

// IsForOneNode says whether pods of one node alone can write a volume: one that others
// may write from elsewhere isn't given to anybody's group.
func IsForOneNode(volume *corev1.PersistentVolume) bool {
	for _, mode := range volume.Spec.AccessModes {
		if mode == corev1.ReadWriteOnce || mode == corev1.ReadWriteOncePod {
			return true
		}
	}
	return false
}

// DirMode is the mode that a directory has for the group, which what is made in it is
// given to, too. All that it allows already stays.
func (g Group) DirMode(mode uint32) uint32 {
	return mode&allBits | g.bits() | mayPass | unix.S_ISGID
}

// fileMode is the mode that a file has for the group: it may run what its owner, or
// anybody else, may.
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

// has says whether there is nothing to do for a file. Devices are nobody's to give.
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
