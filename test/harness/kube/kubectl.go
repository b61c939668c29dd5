package kube

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

// childrensDelay is how long what a program started may still print when that is ended.
const childrensDelay = time.Second

// Kubeconfig is the administrator's.
func (c *Cluster) Kubeconfig() string {
	return filepath.Join(c.Folder.ControlPlane(), "kubeconfigs", "admin")
}

// Kubectl is the administrator's.
func (c *Cluster) Kubectl(ctx context.Context, input string, arguments ...string) (string, error) {
	path, err := apiserver.Binary("kubectl")
	if err != nil {
		return "", err
	}
	return Run(ctx, input, path, append([]string{"--kubeconfig=" + c.Kubeconfig()}, arguments...)...)
}

// Run runs a program, and returns what it prints.
func Run(ctx context.Context, input, path string, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	var problems strings.Builder
	command := exec.CommandContext(ctx, path, arguments...)
	command.WaitDelay = childrensDelay
	command.Stdin, command.Stderr = strings.NewReader(input), &problems
	output, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s%s", filepath.Base(path), strings.Join(arguments, " "), err, output, problems.String())
	}
	return string(output), err
}
