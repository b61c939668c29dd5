package killpoint

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errNoProcess says that no process is left whose calls are watched.
var errNoProcess = errors.New("no process is left")

// notification is the kernel's struct seccomp_notif: a call that waits.
type notification struct {
	ID        uint64
	Thread    uint32
	_         uint32
	Call      int32
	_         uint32
	_         uint64
	Arguments [6]uint64
}

// answer is the kernel's struct seccomp_notif_resp.
type answer struct {
	ID    uint64
	_     int64
	_     int32
	Flags uint32
}

// receive waits for a call, errNoProcess if none can come any more.
func receive(listener int) (notification, error) {
	for {
		ready := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return notification{}, err
		}
		switch {
		case ready[0].Revents&unix.POLLIN != 0:
			call := notification{}
			err := ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&call))
			// ENOENT: the process that made the call is gone.
			if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINTR) {
				return call, err
			}
		case ready[0].Revents != 0:
			return notification{}, errNoProcess
		}
	}
}

// proceed has the kernel carry out a call. The process that made it may be gone.
func proceed(listener int, call notification) error {
	reply := answer{ID: call.ID, Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	err := ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&reply))
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

func ioctl(fd int, request uintptr, argument unsafe.Pointer) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
	if errno != 0 {
		return errno
	}
	return nil
}
