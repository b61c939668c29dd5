package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/cluster"
)

// AllControllers are those that kube-controller-manager runs by default.
const AllControllers = "*"

var controllersFlag = regexp.MustCompile(`--controllers=(\S+)`)

// StandaloneControllers are those that kube-controller-manager is to run beside
// --scope=cluster, as config/standalone says.
func StandaloneControllers() (string, error) {
	content, err := os.ReadFile(filepath.Join(apiserver.Repository(), "config", "standalone", "kustomization.yaml"))
	if err != nil {
		return "", fmt.Errorf("finding out which controllers Stowage replaces: %w", err)
	}
	flag := controllersFlag.FindSubmatch(content)
	if flag == nil {
		return "", errors.New("config/standalone doesn't say which controllers Stowage replaces")
	}
	return string(flag[1]), nil
}

// SwitchControllers has kube-controller-manager run these controllers from now on, and
// no others: it is stopped, if it runs, and started again.
func (c *ControlPlane) SwitchControllers(ctx context.Context, controllers string) error {
	if err := c.ControllerManager.Stop(); err != nil {
		return err
	}
	certificates := filepath.Join(c.dir, "certificates")
	var err error
	c.ControllerManager, err = c.newProgram("kube-controller-manager",
		"--controllers="+cmp.Or(controllers, AllControllers),
		"--use-service-account-credentials",
		"--service-account-private-key-file="+filepath.Join(certificates, apiserver.AccountKeyFile),
		"--root-ca-file="+filepath.Join(certificates, apiserver.AuthorityFile),
		"--service-cluster-ip-range="+apiserver.ServiceRange)
	if err != nil {
		return err
	}
	return c.ControllerManager.StartReady(ctx)
}

func (c *ControlPlane) startScheduler(ctx context.Context) error {
	var err error
	if c.Scheduler, err = c.newProgram("kube-scheduler"); err != nil {
		return err
	}
	return c.Scheduler.StartReady(ctx)
}

// newProgram is a program of Kubernetes that is the only one of its kind, as the user
// of its name.
func (c *ControlPlane) newProgram(name string, arguments ...string) (*cluster.Program, error) {
	path, err := apiserver.Binary(name)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := c.Kubeconfig(name, "system:"+name)
	if err != nil {
		return nil, err
	}
	port, err := cluster.FreePort()
	if err != nil {
		return nil, err
	}
	return cluster.NewProgram(cluster.ProgramOptions{
		Name: name, Path: path, LogFile: c.Log(name), Ready: fmt.Sprintf("https://127.0.0.1:%d/healthz", port),
		Arguments: append([]string{
			"--kubeconfig=" + kubeconfig,
			"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
			"--leader-elect=false", "--v=2",
		}, arguments...),
	}), nil
}
