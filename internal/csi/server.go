// Package csi serves the kubelet. It has the Identity and Node services of the Container Storage
// Interface, one server for each of Stowage's drivers, and their registration with the kubelet.
//
// It checks requests, runs one call at a time for each volume, and gives errors the codes
// of the interface. Mounts and devices are the work of package drivers.
package csi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/stowage-dev/stowage/internal/csi/calls"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
)

const (
	// checkInterval is how often missing sockets are made again.
	checkInterval = 5 * time.Second
	// informInterval is how often the node's information is compared with what the kubelet
	// has.
	informInterval = time.Minute
	// stopPatience is how long the server waits at the end for calls that are under way.
	stopPatience = 20 * time.Second
	// probePatience is how long the server may take to answer itself.
	probePatience = 3 * time.Second
)

// ServerOptions are what servers of all drivers have in common.
type ServerOptions struct {
	// KubeletDir is the kubelet's folder, by the path that the kubelet knows it by.
	KubeletDir string
	// CheckDir returns an error if pods don't see what is mounted in the kubelet's folder;
	// nil: they always see it.
	CheckDir func(dir string) error
	// Version is this program's.
	Version string
	// Calls counts calls; nil: they aren't counted.
	Calls *calls.Calls
	// Log gets calls, and what becomes of sockets.
	Log logr.Logger
}

// Server serves one driver to the kubelet, and has it registered there. It is a Runnable
// of a manager.
type Server struct {
	driver             string
	kubeletDir         string
	endpoint, register string
	log                logr.Logger
	checkDir           func(dir string) error
	inform             *informer
	node               *Node
	services           *grpc.Server
	registrations      *grpc.Server
	registration       *registration

	interval, informEvery, patience time.Duration

	// Of the loop in Start alone: the folder that is claimed, and the sockets.
	held                 *os.File
	serving, registering *socket
	informed             time.Time

	mu      sync.Mutex
	trouble error
	begun   bool
}

// NewServer makes the server of a driver.
func NewServer(driver drivers.Driver, inform Informer, options ServerOptions) *Server {
	name := driver.Name()
	log := options.Log.WithValues("driver", name)
	remembered := &informer{ask: inform}
	server := &Server{
		driver:        name,
		kubeletDir:    options.KubeletDir,
		endpoint:      filepath.Join(options.KubeletDir, "plugins", name, "csi.sock"),
		register:      filepath.Join(options.KubeletDir, "plugins_registry", name+"-reg.sock"),
		log:           log,
		checkDir:      options.CheckDir,
		inform:        remembered,
		node:          NewNode(driver, remembered.report, options.KubeletDir),
		services:      NewGRPCServer(name, options.Log, options.Calls),
		registrations: grpc.NewServer(),
		interval:      checkInterval, informEvery: informInterval, patience: stopPatience,
	}
	server.registration = newRegistration(name, server.endpoint, log)
	csispec.RegisterIdentityServer(server.services, NewIdentity(driver, inform, options.Version))
	csispec.RegisterNodeServer(server.services, server.node)
	registerapi.RegisterRegistrationServer(server.registrations, server.registration)
	return server
}

// Start serves until the context ends. It tries again after an error, such as another server at the socket, and Ready
// reports the error. Until it serves, the agent makes and removes local volumes all the same.
func (s *Server) Start(ctx context.Context) error {
	ticker := time.NewTicker(s.interval)
	defer ticker.Stop()
	for {
		s.record(s.ensure(ctx))
		select {
		case <-ctx.Done():
			return s.stop()
		case <-ticker.C:
		}
	}
}

// ensure makes what is missing: at the start all of it, later what was removed. The driver
// registers only once it is served.
func (s *Server) ensure(ctx context.Context) error {
	if err := s.ensureServed(ctx); err != nil {
		return err
	}
	return s.ensureRegistering(ctx, s.hasChanged(ctx))
}

func (s *Server) ensureServed(ctx context.Context) error {
	if _, err := os.Stat(s.kubeletDir); err != nil {
		return fmt.Errorf("looking for the kubelet's folder: %w: is --kubelet-dir right?", err)
	}
	if s.checkDir != nil {
		if err := s.checkDir(s.kubeletDir); err != nil {
			return err
		}
	}
	if !isHeld(s.held) {
		held, err := claim(filepath.Dir(s.endpoint))
		if err != nil {
			return err
		}
		s.closeHeld()
		s.held = held
	}
	if s.serving.isThere() {
		return nil
	}
	return s.replace(ctx, &s.serving, s.endpoint, s.services)
}

// ensureRegistering shows kubelets the socket of the registration: a new one if the node's
// information changed.
func (s *Server) ensureRegistering(ctx context.Context, again bool) error {
	if s.registering.isThere() && !again {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(s.register), socketDirMode); err != nil {
		return err
	}
	return s.replace(ctx, &s.registering, s.register, s.registrations)
}

// replace makes a socket again and serves it.
func (s *Server) replace(ctx context.Context, at **socket, path string, server *grpc.Server) error {
	made, err := listen(ctx, path, *at)
	if err != nil {
		return err
	}
	before := *at
	*at = made
	s.log.Info("listening", "socket", path)
	go func() {
		defer close(made.ended)
		if err := server.Serve(made.listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			s.log.V(callVerbosity).Info("a socket isn't served any more", "socket", path, "cause", err.Error())
		}
	}()
	s.mu.Lock()
	s.begun = true
	s.mu.Unlock()
	return before.close()
}

// hasChanged reports whether the kubelet has outdated information about the node. Between
// two comparisons it is false.
func (s *Server) hasChanged(ctx context.Context) bool {
	if time.Since(s.informed) < s.informEvery {
		return false
	}
	s.informed = time.Now()
	changed, err := s.inform.hasChanged(ctx)
	if err != nil {
		s.log.Error(err, "finding out what is said of the node")
	}
	return changed
}

// stop takes the driver away from the kubelet, lets calls that are under way end, and
// removes the sockets.
func (s *Server) stop() error {
	problems := []error{s.registering.close(), s.serving.close()}
	s.registrations.Stop()
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.services.GracefulStop()
	}()
	patience := time.NewTimer(s.patience)
	defer patience.Stop()
	select {
	case <-over:
		s.closeHeld()
	case <-patience.C:
		// The calls' work goes on. The claim ends with this process, so that no other agent
		// begins before.
		s.log.Info("stopping although calls are under way")
		// Where callers hung up, Stop would wait for the calls, too.
		go s.services.Stop()
	}
	return errors.Join(problems...)
}

func (s *Server) closeHeld() {
	if s.held != nil {
		s.held.Close()
		s.held = nil
	}
}

// record keeps what is wrong for Ready, and logs it when it begins.
func (s *Server) record(trouble error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if trouble != nil && (s.trouble == nil || s.trouble.Error() != trouble.Error()) {
		s.log.Error(trouble, "serving the kubelet")
	}
	s.trouble = trouble
}

// Ready is a readiness check: it passes if the kubelet has the driver.
func (s *Server) Ready(*http.Request) error {
	s.mu.Lock()
	trouble := s.trouble
	s.mu.Unlock()
	if trouble != nil {
		return fmt.Errorf("serving %s: %w", s.driver, trouble)
	}
	return s.registration.check()
}

// Alive is a liveness check: it passes if the driver answers calls. It also passes while
// another process holds the driver up: to start this one again wouldn't help.
func (s *Server) Alive(request *http.Request) error {
	s.mu.Lock()
	begun, trouble := s.begun, s.trouble
	s.mu.Unlock()
	if !begun || trouble != nil {
		return nil
	}
	connection, err := grpc.NewClient("unix:"+s.endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(request.Context(), probePatience)
	defer cancel()
	if _, err := csispec.NewIdentityClient(connection).Probe(ctx, &csispec.ProbeRequest{}); err != nil {
		return fmt.Errorf("probing %s: %w", s.driver, err)
	}
	return nil
}
