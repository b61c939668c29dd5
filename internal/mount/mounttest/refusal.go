package mounttest

import (
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Refusal is system calls that the kernel doesn't carry out, and what it answers.
type Refusal struct {
	// First and Last are the numbers of the calls, both included.
	First, Last uint32
	Errno       syscall.Errno
}

// NewerThanLinux512 is every system call that came after Linux 5.12, whose last
// one was mount_setattr. The numbers are the same on all platforms.
var NewerThanLinux512 = Refusal{First: 443, Last: 1 << 16, Errno: unix.ENOSYS}

// Sync is fsync, as a disk answers that can't be written.
var Sync = Refusal{First: unix.SYS_FSYNC, Last: unix.SYS_FSYNC, Errno: unix.EIO}

// Under runs work under a kernel that refuses some calls. What work starts in
// other goroutines isn't refused anything.
func (r Refusal) Under(t testing.TB, work func() error) error {
	t.Helper()
	done := make(chan error, 1)
	var filterErr error
	go func() {
		// Never unlocked: the thread can't lose its filter, and ends with the goroutine.
		runtime.LockOSThread()
		if filterErr = r.install(); filterErr != nil {
			done <- nil
			return
		}
		done <- work()
	}()
	err := <-done
	if filterErr != nil {
		t.Fatalf("making the kernel refuse calls: %v", filterErr)
	}
	return err
}

// install gives the calling thread, and no other, a filter of system calls.
func (r Refusal) install() error {
	const loadNumber = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	filter := []unix.SockFilter{
		{Code: loadNumber, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: r.First, Jt: 0, Jf: 2},
		{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: r.Last, Jt: 1, Jf: 0},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(r.Errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}
