package atomicdir_test

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// watch sees what is done to directories, by whomever.
type watch struct{ fd int }

func watchAll(t *testing.T, what uint32, dirs ...string) watch {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	for _, dir := range dirs {
		if _, err := unix.InotifyAddWatch(fd, dir, what); err != nil {
			t.Fatal(err)
		}
	}
	return watch{fd: fd}
}

// events counts what was seen since the last call, in bytes.
func (w watch) events(t *testing.T) int {
	t.Helper()
	n, err := unix.Read(w.fd, make([]byte, 1<<16))
	if errors.Is(err, unix.EAGAIN) {
		return 0
	}
	if err != nil {
		t.Fatal(os.NewSyscallError("read", err))
	}
	return n
}
