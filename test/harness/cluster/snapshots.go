package cluster

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// InstallSnapshots installs the CRDs of snapshots, from the module of their client. A manager that runs
// serves them within half a minute.
func InstallSnapshots(ctx context.Context, config *rest.Config) error {
	module, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/kubernetes-csi/external-snapshotter/client/v8").Output()
	if err != nil {
		return fmt.Errorf("finding the CRDs of snapshots: %w", err)
	}
	_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		Paths: []string{filepath.Join(strings.TrimSpace(string(module)), "config", "crd")}, ErrorIfPathMissing: true,
	})
	return err
}

// NewSnapshotController is the stock controller of snapshots, which `make bin/snapshot-controller` builds.
// It doesn't run yet. Flags come after those that it needs.
func NewSnapshotController(kubeconfig, logFile string, flags ...string) (*Program, error) {
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	return NewProgram(ProgramOptions{
		Name: "snapshot-controller", LogFile: logFile, Ready: "http://" + address + "/metrics",
		Arguments: append([]string{"--kubeconfig=" + kubeconfig, "--http-endpoint=" + address, "--v=5"}, flags...),
	}), nil
}
