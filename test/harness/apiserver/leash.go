package apiserver

import (
	"os"
	"path/filepath"
	"runtime"
)

// leashed is the wrapper by which a server dies with the process that started it.
func leashed(program string) string {
	return filepath.Join(Repository(), "test", "harness", "apiserver", "leash", program)
}

// onOwnThread calls f on an operating system thread that nothing else uses until
// release is called. The kernel ties a leashed program to the thread that
// started it, and a test that changes its thread's mount namespace lets that
// thread die with its goroutine.
func onOwnThread(f func()) (release func()) {
	done, released := make(chan struct{}), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		f()
		close(done)
		<-released
	}()
	<-done
	return func() { close(released) }
}

func emptyFolder(path string) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.MkdirAll(path, 0o700)
}
