// Package apiserver starts a real etcd and kube-apiserver on loopback, on free
// ports, with Stowage's CRDs installed: for test suites, for `make run` and for
// `make demo`.
//
// There is nothing else in such a control plane: no kube-controller-manager, no
// scheduler, no kubelet. The caller alone binds claims, protects them, registers
// nodes and finishes the deletion of pods and namespaces. Package controlplane adds
// the first two.
package apiserver

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/stowage-dev/stowage/test/harness/owned"
)

const (
	startTimeout = 90 * time.Second
	stopTimeout  = 60 * time.Second
)

// Options say how a control plane is started. The zero value is right for a
// test suite: state in a temporary folder that Stop removes.
type Options struct {
	// DataDir keeps etcd's state across Stop and Start. Empty: a temporary one.
	DataDir string
	// CertDir is where the API server's certificates lie; what is in it is
	// removed at the start. Empty: a temporary one.
	CertDir string
	// Address that the API server listens on, where Port is set. Empty: 127.0.0.1.
	Address string
	// Port of the API server. 0: any free one, of 127.0.0.1.
	Port int
	// EtcdPort is the client port of etcd on 127.0.0.1. 0: any free one.
	EtcdPort int
	// Output receives what etcd and kube-apiserver log. Nil: nothing.
	Output io.Writer
	// WithoutCRDs leaves Stowage's CRDs out.
	WithoutCRDs bool
	// WatchCache has the server answer from its watch cache, as the servers of clusters do.
	// A list then waits up to 100 ms until the cache has caught up with etcd, which is most
	// of the time that a suite takes whose objects change between its lists.
	WatchCache bool
	// Stock has the server serve a whole Kubernetes, whose other programs the caller
	// starts: there are service accounts, which kube-controller-manager makes, Services
	// have addresses, and kubelets can be called. It needs a CertDir.
	Stock bool
	// Gates are feature gates, such as "CrossNamespaceVolumeDataSource=true".
	Gates string
	// OneByOne is for suites whose requests come one after the other: the servers use one
	// processor, and need an eighth less time of it.
	OneByOne bool
	// Rights has the server grant what config/rbac grants, for the identities of As, and ask
	// for the rights that OpenShift asks for, too.
	Rights bool
}

// Server is a running control plane.
type Server struct {
	// Config is a client configuration of a member of system:masters.
	Config *rest.Config

	env *envtest.Environment
	// release ends the thread that the servers' lives are tied to.
	release func()
	// remove removes the temporary folder, by which servers of a test that is killed are
	// found.
	remove func() error
}

// Start starts etcd and kube-apiserver and waits until they serve. The caller
// stops what it got. The API server authorizes by Node and RBAC and has the
// NodeRestriction plug-in on, as a cluster does. Unless it is a stock one,
// ServiceAccount admission is off, because there are no default service accounts.
func Start(options Options) (*Server, error) {
	assets, err := Binaries()
	if err != nil {
		return nil, err
	}
	if options.CertDir != "" {
		if err := errors.Join(os.RemoveAll(options.CertDir), os.MkdirAll(options.CertDir, 0o700)); err != nil {
			return nil, fmt.Errorf("emptying the folder of certificates: %w", err)
		}
	}
	remove, err := owned.Temporary("servers")
	if err != nil {
		return nil, err
	}
	env, err := environment(options)
	if err == nil {
		err = leash(assets, options)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("preparing a control plane: %w", err), remove())
	}
	server := &Server{env: env, remove: remove}
	server.release = onOwnThread(func() { server.Config, err = env.Start() })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting etcd and kube-apiserver from %s: %w", assets, err), server.Stop())
	}
	if !options.Stock {
		server.Config = server.withToken(administrator)
	}
	if options.Rights {
		if err := server.grant(assets); err != nil {
			return nil, errors.Join(err, server.Stop())
		}
	}
	return server, nil
}

// Stop stops the API server and etcd and waits until they are gone. A nil server has nothing
// to stop.
func (s *Server) Stop() error {
	if s == nil {
		return nil
	}
	defer s.release()
	return errors.Join(s.env.Stop(), s.remove())
}

// User makes a client certificate for a user of the given name and groups, and
// returns a client configuration with it. What the user may do is RBAC's.
func (s *Server) User(name string, groups ...string) (*rest.Config, error) {
	user, err := s.addUser(name, groups)
	if err != nil {
		return nil, err
	}
	return user.Config(), nil
}

// Kubeconfig is the text of a kubeconfig file for one of this server's users.
func (s *Server) Kubeconfig(name string, groups ...string) ([]byte, error) {
	user, err := s.addUser(name, groups)
	if err != nil {
		return nil, err
	}
	return user.KubeConfig()
}

func (s *Server) addUser(name string, groups []string) (*envtest.AuthenticatedUser, error) {
	user, err := s.env.AddUser(envtest.User{Name: name, Groups: groups}, rest.CopyConfig(s.env.Config))
	if err != nil {
		return nil, fmt.Errorf("making a client certificate for %s: %w", name, err)
	}
	return user, nil
}

func environment(options Options) (*envtest.Environment, error) {
	env := &envtest.Environment{
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  stopTimeout,
	}
	if !options.WithoutCRDs {
		env.CRDInstallOptions.MaxTime = startTimeout
		env.CRDDirectoryPaths = []string{filepath.Join(Repository(), "config", "crd")}
		env.ErrorIfCRDPathMissing = true
	}
	env.ControlPlane.Etcd = etcd(options)
	server := env.ControlPlane.GetAPIServer()
	configure(server, options)
	if options.Stock {
		return env, configureStock(server, options)
	}
	withoutQueues(server)
	return env, errors.Join(acceptTokens(server), record(server))
}

func etcd(options Options) *envtest.Etcd {
	etcd := &envtest.Etcd{Path: leashed("etcd"), DataDir: options.DataDir, Out: options.Output, Err: options.Output}
	if options.EtcdPort != 0 {
		etcd.URL = &url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", options.EtcdPort)}
	}
	return etcd
}

func configure(server *envtest.APIServer, options Options) {
	server.Configure().
		Set("authorization-mode", "Node", "RBAC").
		Set("enable-admission-plugins", "NodeRestriction").
		Set("watch-cache", strconv.FormatBool(options.WatchCache))
	server.Path, server.CertDir = leashed("kube-apiserver"), options.CertDir
	server.Out, server.Err = options.Output, options.Output
	if options.Rights {
		server.Configure().Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	}
	if options.Gates != "" {
		server.Configure().Set("feature-gates", options.Gates)
	}
	if options.Port != 0 {
		server.SecureServing.Address, server.SecureServing.Port = cmp.Or(options.Address, "127.0.0.1"), strconv.Itoa(options.Port)
	}
}

// withoutQueues has a server take each request at once: tests come alone, and queues take time.
func withoutQueues(server *envtest.APIServer) {
	server.Configure().
		Set("enable-priority-and-fairness", "false").
		Set("max-requests-inflight", "0").
		Set("max-mutating-requests-inflight", "0")
}

// Binaries is the folder with etcd, kube-apiserver and kubectl.
func Binaries() (string, error) {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return dir, nil
	}
	built, err := filepath.Glob(filepath.Join(Repository(), "bin", "k8s", "*", "kube-apiserver"))
	if err != nil || len(built) == 0 {
		return "", errors.New("no control plane is built: run 'make controlplane' first, or set KUBEBUILDER_ASSETS")
	}
	return filepath.Dir(built[len(built)-1]), nil
}

// Binary is where `make controlplane`, or `make controlplane-whole`, puts a program of Kubernetes.
func Binary(name string) (string, error) {
	folder, err := Binaries()
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(filepath.Join(folder, name))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("finding %s (make controlplane-whole builds it): %w", name, err)
	}
	return path, nil
}

// repository is set by the linker where the compiler leaves out paths, as in the Makefile:
// checkouts then share what is compiled.
var repository string

// Repository is the top folder of the checkout that this file was compiled from.
func Repository() string {
	if repository != "" {
		return repository
	}
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}

// leashed is the wrapper by which a server dies with the process that started it.
func leashed(program string) string {
	return filepath.Join(Repository(), "test", "harness", "apiserver", "leash", program)
}

// leash says to the wrapper where the servers are, and how many processors they use.
func leash(assets string, options Options) error {
	if err := os.Setenv("STOWAGE_CONTROLPLANE", assets); err != nil {
		return err
	}
	if !options.OneByOne {
		return os.Unsetenv("STOWAGE_CONTROLPLANE_PROCESSORS")
	}
	return os.Setenv("STOWAGE_CONTROLPLANE_PROCESSORS", "1")
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
