// Package status has what servers of NFS version 3 and mountd answer instead of results, as errnos.
package status

import "syscall"

// BadCookie is the status of a listing that can't continue at a cookie.
const BadCookie = 10003

// Errno gives the errno of a status of NFS version 3 or mountd (RFC 1813,
// 2.6 and 5.1.5). Those below 100 were taken from the errnos of BSD.
func Errno(status uint32) syscall.Errno {
	if errno, known := errnos[status]; known {
		return errno
	}
	return syscall.EIO
}

var errnos = map[uint32]syscall.Errno{
	1:     syscall.EPERM,
	2:     syscall.ENOENT,
	5:     syscall.EIO,
	6:     syscall.ENXIO,
	13:    syscall.EACCES,
	17:    syscall.EEXIST,
	18:    syscall.EXDEV,
	19:    syscall.ENODEV,
	20:    syscall.ENOTDIR,
	21:    syscall.EISDIR,
	22:    syscall.EINVAL,
	27:    syscall.EFBIG,
	28:    syscall.ENOSPC,
	30:    syscall.EROFS,
	31:    syscall.EMLINK,
	63:    syscall.ENAMETOOLONG,
	66:    syscall.ENOTEMPTY,
	69:    syscall.EDQUOT,
	70:    syscall.ESTALE,
	10001: syscall.ESTALE,  // a handle that the server can't read
	10004: syscall.ENOTSUP, // a procedure that the server hasn't
	10008: syscall.EAGAIN,  // not done, for instance because a tape is being fetched
}
