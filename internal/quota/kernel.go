package quota

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Numbers of the kernel: see quotactl(2), and the xfs/linux headers of its "quota manager".
// ext4 has the same calls.
const (
	projectQuota = 2 // PRJQUOTA

	getQuota  = 'X'<<8 + 3 // Q_XGETQUOTA
	setLimit  = 'X'<<8 + 4 // Q_XSETQLIM
	getStates = 'X'<<8 + 8 // Q_XGETQSTATV

	quotaVersion   = 1      // FS_DQUOT_VERSION
	stateVersion   = 1      // FS_QSTATV_VERSION1
	ofProject      = 1 << 1 // FS_PROJ_QUOTA
	fieldInodeHard = 1 << 1 // FS_DQ_IHARD
	fieldBlockHard = 1 << 3 // FS_DQ_BHARD

	projectAccounting  = 1 << 4 // FS_QUOTA_PDQ_ACCT
	projectEnforcement = 1 << 5 // FS_QUOTA_PDQ_ENFD

	getAttributes = 0x801c581f // FS_IOC_FSGETXATTR
	putAttributes = 0x401c5820 // FS_IOC_FSSETXATTR
	inherit       = 0x200      // FS_XFLAG_PROJINHERIT

	getGeometry = 0x80705864 // XFS_IOC_FSGEOMETRY_V1
)

// diskQuota is struct fs_disk_quota.
type diskQuota struct {
	version              int8
	flags                int8
	fields               uint16
	project              uint32
	blockHard, blockSoft uint64
	inodeHard, inodeSoft uint64
	blocks, inodes       uint64
	_                    [56]byte // times, and what real-time devices have
}

// state is struct fs_quota_statv.
type state struct {
	version int8
	_       uint8
	flags   uint16
	_       [156]byte // files, times
}

// attributes is struct fsxattr.
type attributes struct {
	flags, extent, extents, project, cowExtent uint32
	_                                          [8]byte
}

// geometry is struct xfs_fsop_geom_v1.
type geometry struct {
	blockSize, _, _, _, _, _ uint32
	inodeSize, inodePercent  uint32
	dataBlocks               uint64
	_                        [3]uint64
	_                        [16]byte
	_, _, _, _, _, _, _      uint32
	_                        uint32
}

// control asks for something of the quotas of the file system that a file lies on,
// whatever device that is on. It needs Linux 5.14.
func control(file *os.File, command int, project Project, answer *diskQuota) error {
	return quotactl(file, command, project, unsafe.Pointer(answer))
}

func stateOf(file *os.File) (*state, error) {
	answer := &state{version: stateVersion}
	return answer, quotactl(file, getStates, 0, unsafe.Pointer(answer))
}

func quotactl(file *os.File, command int, project Project, answer unsafe.Pointer) error {
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, file.Fd(), uintptr(command<<8|projectQuota), uintptr(project), uintptr(answer), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func attributesOf(dir *os.File) (*attributes, error) {
	answer := &attributes{}
	return answer, ioctl(dir, getAttributes, unsafe.Pointer(answer))
}

func setAttributes(dir *os.File, wanted *attributes) error {
	return ioctl(dir, putAttributes, unsafe.Pointer(wanted))
}

// ioctl opens the directory again: one that is open with O_PATH takes no calls.
func ioctl(dir *os.File, call uintptr, argument unsafe.Pointer) error {
	fd, err := unix.Openat(int(dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), call, uintptr(argument))
	if errno != 0 {
		return errno
	}
	return nil
}
