package killpoint

import "golang.org/x/sys/unix"

// older are the calls that newer platforms don't have any more.
var older = append([]rule{{call: unix.SYS_OPEN, argument: 1, bits: unix.O_CREAT, value: unix.O_CREAT}},
	always(
		unix.SYS_CREAT, unix.SYS_MKDIR, unix.SYS_MKNOD, unix.SYS_SYMLINK, unix.SYS_LINK, unix.SYS_RMDIR, unix.SYS_UNLINK, unix.SYS_RENAME,
		unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_TRUNCATE,
	)...)
