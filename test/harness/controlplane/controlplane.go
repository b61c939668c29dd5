// Package controlplane runs the control plane of a stock Kubernetes on one machine:
// etcd, kube-apiserver, kube-controller-manager and kube-scheduler, with the rights
// that they have in a cluster. Nodes are the caller's: kubelets that it starts, with
// the kubeconfigs that it gets here, or objects that it makes.
//
// All is below one folder. Nothing outlives the program that started it; the folder's
// logs and etcd's data stay.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/cluster"
)

const (
	servicePort  = 443
	readyTimeout = time.Minute
	pollInterval = 100 * time.Millisecond
)

// Options say how a control plane is started.
type Options struct {
	// Dir is the folder that holds everything. It is made if it is not there.
	Dir string
	// Address at which kubelets reach the API server. The server listens on all addresses
	// then, on port 443: pods find it at apiserver.ServiceAddress, too, which a network
	// interface must have. Empty: 127.0.0.1, and any port.
	Address string
	// Controllers are those that kube-controller-manager runs, as its flag has them.
	// Empty: AllControllers.
	Controllers string
}

// ControlPlane is a running one.
type ControlPlane struct {
	// Config is a client configuration of a member of system:masters.
	Config *rest.Config
	// ControllerManager and Scheduler can be killed, and started again.
	ControllerManager, Scheduler *cluster.Program

	dir    string
	server *apiserver.Server
}

// Start starts a control plane, and returns once all of it is ready. What it started
// before an error is stopped again.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	c := &ControlPlane{dir: options.Dir}
	err := c.start(ctx, options)
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context, options Options) error {
	for _, folder := range []string{"certificates", "etcd", "kubeconfigs", "logs"} {
		if err := os.MkdirAll(filepath.Join(c.dir, folder), 0o700); err != nil {
			return fmt.Errorf("making the folders of the control plane: %w", err)
		}
	}
	if err := c.startServer(options); err != nil {
		return err
	}
	if err := c.startScheduler(ctx); err != nil {
		return err
	}
	if err := c.SwitchControllers(ctx, options.Controllers); err != nil {
		return err
	}
	return c.awaitServiceAccounts(ctx)
}

// awaitServiceAccounts waits until pods can be created: kube-controller-manager is ready
// before it has made the service account that they are if they name none.
func (c *ControlPlane) awaitServiceAccounts(ctx context.Context) error {
	cluster, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, pollInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := cluster.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("waiting for the service accounts: %w; see %s", err, c.Log("kube-controller-manager"))
	}
	return nil
}

func (c *ControlPlane) startServer(options Options) error {
	log, err := os.Create(c.Log("kube-apiserver"))
	if err != nil {
		return fmt.Errorf("making a log file: %w", err)
	}
	defer log.Close()
	server := apiserver.Options{
		DataDir: filepath.Join(c.dir, "etcd"), CertDir: filepath.Join(c.dir, "certificates"),
		Address: options.Address, Output: log, WithoutCRDs: true, WatchCache: true, Stock: true,
	}
	if options.Address != "" {
		server.Port = servicePort
	} else if server.Port, err = cluster.FreePort(); err != nil {
		return err
	}
	if c.server, err = apiserver.Start(server); err != nil {
		return fmt.Errorf("%w; see %s", err, log.Name())
	}
	c.Config = c.server.Config
	_, err = c.Kubeconfig("admin", "admin", "system:masters")
	return err
}

// Log is the file that a program of the control plane logs to. That of kube-apiserver
// has etcd's words, too.
func (c *ControlPlane) Log(program string) string {
	return filepath.Join(c.dir, "logs", program+".log")
}

// Kubeconfig writes a kubeconfig for a user, and returns the path of the file, which has
// the name that is given first.
func (c *ControlPlane) Kubeconfig(file, user string, groups ...string) (string, error) {
	content, err := c.server.Kubeconfig(user, groups...)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.dir, "kubeconfigs", file)
	return path, os.WriteFile(path, content, 0o600)
}

// NodeKubeconfig writes the kubeconfig of a node's kubelet, and returns its path.
func (c *ControlPlane) NodeKubeconfig(node string) (string, error) {
	return c.Kubeconfig(node, "system:node:"+node, "system:nodes")
}

// KubeletClients is a kubelet's authentication.x509.clientCAFile.
func (c *ControlPlane) KubeletClients() string {
	return filepath.Join(c.dir, "certificates", apiserver.AuthorityFile)
}

// Stop stops everything, the API server last.
func (c *ControlPlane) Stop() error {
	return errors.Join(c.ControllerManager.Stop(), c.Scheduler.Stop(), c.server.Stop())
}
