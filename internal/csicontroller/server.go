package csicontroller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// socketMode lets only the manager's own user call: a call can remove data.
	socketMode = 0o600
	// maxSocketPath is the kernel's limit of a socket's path, in bytes.
	maxSocketPath = 107
	// callTime bounds a call whose caller sets no deadline, or a later one.
	callTime = 5 * time.Minute
	// stopPatience is how long the server waits at the end for calls that are under way.
	stopPatience = 5 * time.Second
	// retryInterval is how often it tries to listen.
	retryInterval = 5 * time.Second
	// dialTimeout is how long another process may take to accept a connection.
	dialTimeout = time.Second
	// maxCalls is how many calls of one connection run at once.
	maxCalls = 100
)

// Server serves a Service on a socket. It is a Runnable of a manager, and needs no lease: backends take the
// calls of two managers.
type Server struct {
	service *Service
	path    string
	log     logr.Logger
}

// NewServer returns the server of a service, at the absolute path of a socket.
func NewServer(service *Service, path string, log logr.Logger) (*Server, error) {
	switch {
	case !filepath.IsAbs(path):
		return nil, fmt.Errorf("the socket of StorageBackend %s is an absolute path, not %q", service.Name, path)
	case len(path) > maxSocketPath:
		return nil, fmt.Errorf("the path of the socket of StorageBackend %s has %d bytes: at most %d are possible", service.Name, len(path), maxSocketPath)
	}
	return &Server{service: service, path: path, log: log.WithName("csi-controller").WithValues("backend", service.Name)}, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*Server) NeedLeaderElection() bool { return false }

// Start serves until the context ends. It replaces a socket that an earlier process left. While it can't
// listen, the log says why, and the manager's other work goes on.
func (s *Server) Start(ctx context.Context) error {
	for {
		listener := s.listen(ctx)
		if listener == nil {
			return nil
		}
		if err := s.serve(ctx, listener); err != nil {
			s.log.Error(err, "the CSI Controller service ended, and begins again")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryInterval):
		}
	}
}

// serve answers calls at a socket until the context ends, or the socket fails.
func (s *Server) serve(ctx context.Context, listener net.Listener) error {
	server := grpc.NewServer(grpc.UnaryInterceptor(s.answer), grpc.MaxConcurrentStreams(maxCalls))
	csispec.RegisterIdentityServer(server, s.service)
	csispec.RegisterControllerServer(server, s.service)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	s.log.Info("serving the CSI Controller service", "socket", s.path)
	select {
	case err := <-ended:
		server.Stop()
		return err
	case <-ctx.Done():
	}
	force := time.AfterFunc(stopPatience, server.Stop)
	defer force.Stop()
	server.GracefulStop()
	return nil
}

// listen tries to listen until it can, or the context ends: then there is no listener.
func (s *Server) listen(ctx context.Context) (listener net.Listener) {
	said := ""
	_ = wait.PollUntilContextCancel(ctx, retryInterval, true, func(ctx context.Context) (bool, error) { // the context alone ends it
		var err error
		if listener, err = listen(ctx, s.path); err != nil && err.Error() != said {
			said = err.Error()
			s.log.Error(err, "serving the CSI Controller service")
		}
		return err == nil, nil
	})
	return listener
}

// listen listens at a path where there is nothing, or a socket without a listener.
func listen(ctx context.Context, path string) (net.Listener, error) {
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listening at %s: %w", path, err)
	}
	// Another process may have replaced the socket by then.
	listener.SetUnlinkOnClose(false)
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// removeStale removes a socket that has no listener. It returns an error where there is anything else.
func removeStale(ctx context.Context, path string) error {
	there, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case there.Mode().Type() != os.ModeSocket:
		return fmt.Errorf("%s isn't a socket: remove it, if nothing needs it", path)
	}
	connection, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		return errors.Join(fmt.Errorf("another process listens at %s: stop it", path), connection.Close())
	case !errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("finding out whether another process listens at %s: %w", path, err)
	}
	return os.Remove(path)
}

// answer bounds a call, gives its error a code, and survives a panic. It logs no field of the request but
// the volume's id: any may have secrets.
func (s *Server) answer(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (response any, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	began := time.Now()
	defer func() {
		if panicked := recover(); panicked != nil {
			s.log.Error(errors.New("a call panicked"), "serving CSI", "method", info.FullMethod, "stack", string(debug.Stack()))
			response, err = nil, status.Error(codes.Internal, "a fault of the server: the manager's log has more")
		}
		log := s.log.V(1).WithValues("method", info.FullMethod, "code", status.Code(err).String(), "took", time.Since(began).String())
		if of, isOfVolume := request.(interface{ GetVolumeId() string }); isOfVolume {
			log = log.WithValues("volume", of.GetVolumeId())
		}
		log.Info("called")
	}()
	response, err = next(logr.NewContext(ctx, s.log), request)
	return response, toStatus(err)
}
