package csi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// socketMode lets nobody but root call.
	socketMode = 0o600
	// socketDirMode is the mode of the folders that sockets lie in.
	socketDirMode = 0o750
	// maxSocketPath is how long the kernel lets the path of a socket be.
	maxSocketPath = 107
	// dialPatience is how long another server is given to take a connection.
	dialPatience = time.Second
)

// socket is a path at which this process listens.
type socket struct {
	path     string
	listener *net.UnixListener
	made     os.FileInfo
	// ended is closed when nobody serves it any more.
	ended chan struct{}
}

// listen makes a socket, in place of one that nobody listens at any more, or of before,
// an own one. It appears whole, with its mode, in one step, in which it replaces what was
// there: whoever watches the folder sees a new one, and no moment without.
func listen(ctx context.Context, path string, before *socket) (*socket, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path of the socket %s is longer than %d bytes, which the kernel doesn't allow", path, maxSocketPath)
	}
	if !before.isThere() {
		if err := checkFree(ctx, path); err != nil {
			return nil, err
		}
	}
	// Kubelets don't look at names that begin with a dot.
	hidden := filepath.Join(filepath.Dir(path), "."+strings.TrimSuffix(filepath.Base(path), ".sock"))
	if err := removeSocket(hidden); err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: hidden, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listening at %s: %w", path, err)
	}
	listener.SetUnlinkOnClose(false)
	made, err := show(hidden, path)
	if err != nil {
		return nil, errors.Join(err, listener.Close(), removeSocket(hidden))
	}
	return &socket{path: path, listener: listener, made: made, ended: make(chan struct{})}, nil
}

// show gives a hidden socket its mode and its name.
func show(hidden, path string) (os.FileInfo, error) {
	if err := os.Chmod(hidden, socketMode); err != nil {
		return nil, err
	}
	made, err := os.Lstat(hidden)
	if err != nil {
		return nil, err
	}
	return made, os.Rename(hidden, path)
}

// checkFree makes sure that nothing is at a path but a socket at which nobody listens.
func checkFree(ctx context.Context, path string) error {
	if found, err := findSocket(path); !found || err != nil {
		return err
	}
	connection, err := (&net.Dialer{Timeout: dialPatience}).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		return errors.Join(fmt.Errorf("another process listens at %s: stop it, or give this one another --kubelet-dir", path), connection.Close())
	case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, os.ErrNotExist):
		return nil
	default:
		return fmt.Errorf("finding out whether somebody listens at %s: %w", path, err)
	}
}

// findSocket says whether there is a socket at a path; anything else there is an error.
func findSocket(path string) (found bool, err error) {
	there, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if there.Mode().Type() != os.ModeSocket {
		return false, fmt.Errorf("%s isn't a socket: remove it, if nothing needs it", path)
	}
	return true, nil
}

// removeSocket removes a socket, and nothing else.
func removeSocket(path string) error {
	if found, err := findSocket(path); !found || err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// isThere says whether the path leads to this very socket, and somebody serves it.
func (s *socket) isThere() bool {
	if s == nil {
		return false
	}
	select {
	case <-s.ended:
		return false
	default:
	}
	return s.isOwn()
}

func (s *socket) isOwn() bool {
	there, err := os.Lstat(s.path)
	return err == nil && os.SameFile(there, s.made)
}

// close stops listening. What is at the path is removed, unless another server's took
// its place.
func (s *socket) close() error {
	if s == nil {
		return nil
	}
	var removal error
	if s.isOwn() {
		removal = removeSocket(s.path)
	}
	if err := s.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return errors.Join(removal, err)
	}
	return removal
}

// claim keeps other agents from serving what lies in a folder, as long as the file that
// it returns is open. It makes the folder.
func claim(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, socketDirMode); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, socketDirMode); err != nil {
		return nil, err
	}
	held, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		held.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("another node agent has %s: stop it, or give this one another --kubelet-dir", dir)
		}
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	return held, nil
}

// isHeld says whether a claimed folder is still at its path.
func isHeld(held *os.File) bool {
	if held == nil {
		return false
	}
	claimed, err := held.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(held.Name())
	return err == nil && os.SameFile(claimed, there)
}
