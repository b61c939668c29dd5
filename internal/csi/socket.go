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
	// socketMode lets only root call.
	socketMode = 0o600
	// socketDirMode is the mode of the folders that sockets lie in.
	socketDirMode = 0o750
	// maxSocketPath is the kernel's limit of a socket's path, in bytes.
	maxSocketPath = 107
	// dialPatience is how long another server may take to accept a connection.
	dialPatience = time.Second
)

// socket is a path at which this process listens.
type socket struct {
	path     string
	listener *net.UnixListener
	made     os.FileInfo
	// ended is closed when the socket isn't served any more.
	ended chan struct{}
}

// listen makes a socket. It replaces one without a listener, or before: this process's. The socket
// appears with its mode, in one step with the removal of the old one. A kubelet that watches the
// folder sees a new socket, and no moment without.
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

// checkFree returns an error unless a path has nothing, or a socket without a listener.
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
		return fmt.Errorf("finding out whether another process listens at %s: %w", path, err)
	}
}

// findSocket reports whether there is a socket at a path; anything else there is an error.
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

// isThere reports whether the path leads to this very socket, and the socket is served.
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

// close stops listening. It removes the socket at the path, unless that is another one.
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

// isHeld reports whether a claimed folder is still at its path.
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
