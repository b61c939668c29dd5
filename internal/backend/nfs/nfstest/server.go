// Package nfstest runs NFS servers for tests, in this process. One is correct and serves a folder
// of this machine; the other is a proxy before it that makes faults.
//
// Both listen on the loopback address only. It is never part of a program.
package nfstest

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/willscott/go-nfs"
	"github.com/willscott/go-nfs/helpers"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

const (
	// Host is where the servers listen.
	Host = "127.0.0.1"
	// Share is the path that a Server exports.
	Share = "/exports/volumes"

	// Anonymous is the user to which a server that squashes root maps it.
	Anonymous = 65534

	handles          = 1 << 16
	unprivilegedPort = 1024
)

// Server exports one folder.
type Server struct {
	listener net.Listener
	folder   string
	// ReadOnly makes the share refuse changes.
	ReadOnly atomic.Bool
	// Secure makes the server refuse clients with a port of 1024 or more.
	Secure atomic.Bool
	// Squash maps root to Anonymous, like all clients of this server.
	Squash atomic.Bool
	// Size is what the share is said to hold, in bytes. Zero: more than can be.
	Size atomic.Uint64
}

// Serve exports a folder until Close.
func Serve(folder string) (*Server, error) {
	listener, err := listen()
	if err != nil {
		return nil, err
	}
	nfs.Log.SetLevel(nfs.PanicLevel)
	server := &Server{listener: listener, folder: folder}
	go func() { _ = nfs.Serve(listener, helpers.NewCachingHandler(server, handles)) }()
	return server, nil
}

// Port is where both NFS and mountd are served.
func (s *Server) Port() int { return portOf(s.listener) }

// Close stops the server from taking connections.
func (s *Server) Close() { s.listener.Close() }

// Mount grants the share to clients that request it by its path.
func (s *Server) Mount(_ context.Context, conn net.Conn, request nfs.MountRequest) (nfs.MountStatus, billy.Filesystem, []nfs.AuthFlavor) {
	from, isTCP := conn.RemoteAddr().(*net.TCPAddr)
	switch {
	case string(request.Dirpath) != Share:
		return nfs.MountStatusErrNoEnt, s.files(), nil
	case s.Secure.Load() && isTCP && from.Port >= unprivilegedPort:
		return nfs.MountStatusErrAcces, s.files(), nil
	default:
		return nfs.MountStatusOk, s.files(), []nfs.AuthFlavor{nfs.AuthFlavorNull}
	}
}

// Change makes attributes changeable.
func (s *Server) Change(files billy.Filesystem) billy.Change {
	change, _ := files.(billy.Change)
	return change
}

// FSStat reports the share's size.
func (s *Server) FSStat(_ context.Context, _ billy.Filesystem, stat *nfs.FSStat) error {
	if size := s.Size.Load(); size > 0 {
		stat.TotalSize, stat.FreeSize, stat.AvailableSize = size, size/2, size/2
	}
	return nil
}

// ToHandle is the caching handler's.
func (s *Server) ToHandle(billy.Filesystem, []string) []byte { return nil }

// FromHandle is the caching handler's.
func (s *Server) FromHandle([]byte) (billy.Filesystem, []string, error) { return nil, nil, nil }

// InvalidateHandle is the caching handler's.
func (s *Server) InvalidateHandle(billy.Filesystem, []byte) error { return nil }

// HandleLimit is the caching handler's.
func (s *Server) HandleLimit() int { return handles }

func (s *Server) files() billy.Filesystem {
	return files{Filesystem: osfs.New(s.folder), folder: s.folder, server: s}
}

// files are the folder's, with attributes that can be changed.
type files struct {
	billy.Filesystem
	folder string
	server *Server
}

func (f files) Capabilities() billy.Capability {
	if f.server.ReadOnly.Load() {
		return billy.DefaultCapabilities &^ billy.WriteCapability
	}
	return billy.DefaultCapabilities
}

func (f files) MkdirAll(name string, mode os.FileMode) error {
	return errors.Join(f.Filesystem.MkdirAll(name, mode), f.squash(name))
}

func (f files) Create(name string) (billy.File, error) {
	made, err := f.Filesystem.Create(name)
	return made, errors.Join(err, f.squash(name))
}

func (f files) squash(name string) error {
	if !f.server.Squash.Load() {
		return nil
	}
	return os.Lchown(f.path(name), Anonymous, Anonymous)
}

// Rename makes no directories on the way, as servers don't.
func (f files) Rename(from, to string) error { return os.Rename(f.path(from), f.path(to)) }

func (f files) Chmod(name string, mode os.FileMode) error { return os.Chmod(f.path(name), mode) }
func (f files) Chown(name string, uid, gid int) error     { return f.Lchown(name, uid, gid) }

func (f files) Lchown(name string, uid, gid int) error {
	if f.server.Squash.Load() && (uid != Anonymous || gid != Anonymous) {
		return os.ErrPermission
	}
	return os.Lchown(f.path(name), uid, gid)
}

func (f files) Chtimes(name string, accessed, modified time.Time) error {
	return os.Chtimes(f.path(name), accessed, modified)
}

func (f files) path(name string) string { return filepath.Join(f.folder, name) }

// Ports are the mount options that lead to a server on a port of its own.
func Ports(port int) []stowagev1alpha1.MountOption {
	number := stowagev1alpha1.MountOption(strconv.Itoa(port))
	return []stowagev1alpha1.MountOption{"port=" + number, "mountport=" + number}
}

func listen() (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), "tcp", net.JoinHostPort(Host, "0"))
}

func portOf(listener net.Listener) int {
	if address, isTCP := listener.Addr().(*net.TCPAddr); isTCP {
		return address.Port
	}
	return 0
}
