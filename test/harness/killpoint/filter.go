package killpoint

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rule is a system call that may be a step: with any arguments, or only where the bits of
// one of them have this value.
type rule struct {
	call        uint32
	argument    int
	bits, value uint32
}

// some are system calls of which some are steps.
var some = []rule{
	{call: unix.SYS_OPENAT, argument: 2, bits: unix.O_CREAT, value: unix.O_CREAT},
	{call: unix.SYS_IOCTL, argument: 1, bits: ioctlKind, value: 'L' << 8}, // of loop devices
	{call: unix.SYS_IOCTL, argument: 1, bits: ioctlKind, value: 'X' << 8}, // attributes of files
}

func rules() []rule {
	return slices.Concat(some, older, always(
		unix.SYS_MKDIRAT, unix.SYS_MKNODAT, unix.SYS_SYMLINKAT, unix.SYS_LINKAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2,
		unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE, unix.SYS_COPY_FILE_RANGE,
		unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT,
		unix.SYS_SETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
		unix.SYS_MOUNT, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_UMOUNT2,
	))
}

const (
	// ioctlKind is the bits of an ioctl's number that say what it is for.
	ioctlKind = 0xff00
	// Where the number of a system call, and the low half of its arguments, are for the
	// filter.
	numberAt   = 0
	argumentAt = 16
)

func always(calls ...uint32) []rule {
	rules := make([]rule, 0, len(calls))
	for _, call := range calls {
		rules = append(rules, rule{call: call})
	}
	return rules
}

// isStep reports whether a watched call is a step. Most of what is written goes to sockets
// and to the program's own descriptors.
func isStep(call notification) bool {
	if call.Call != unix.SYS_WRITE && call.Call != unix.SYS_PWRITE64 {
		return true
	}
	file, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", call.Thread, call.Arguments[0]))
	return err == nil && strings.HasPrefix(file, "/") && !strings.HasPrefix(file, "/dev/null")
}

// instructions are what the kernel does for a call of this rule, and none else.
func (r rule) instructions() []unix.SockFilter {
	const load, equal = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	notify := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF}
	if r.bits == 0 {
		return []unix.SockFilter{{Code: load, K: numberAt}, {Code: equal, K: r.call, Jf: 1}, notify}
	}
	return []unix.SockFilter{
		{Code: load, K: numberAt},
		{Code: equal, K: r.call, Jf: 4},
		{Code: load, K: argumentAt + 8*uint32(r.argument)},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: r.bits},
		{Code: equal, K: r.value, Jf: 1},
		notify,
	}
}

// watchThread has the kernel ask before each step of this thread, and of whatever it
// starts.
func watchThread() (listener int, err error) {
	var filter []unix.SockFilter
	for _, rule := range rules() {
		filter = append(filter, rule.instructions()...)
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	// A signal that isn't deadly doesn't make a call start again.
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	number, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return 0, errno
	}
	unix.CloseOnExec(int(number))
	return int(number), nil
}
