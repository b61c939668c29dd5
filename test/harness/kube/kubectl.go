package kube

import (
	"context"
	"fmt"
	"os"
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

const (
	inCluster   = "### In a cluster"
	readmeImage = "docker.io/library/busybox:stable"
)

// QuickStart is what README has people type to install Stowage, and to use it. That to
// build images and push them comes before: nodes here have them already, from archives.
func QuickStart() (install, use string, err error) {
	blocks, err := BlocksOf("README.md", inCluster, 3)
	if err != nil {
		return "", "", err
	}
	return blocks[1], blocks[2], nil
}

// BlocksOf is what a page of the repository has in fences between a heading and the next one: so many.
func BlocksOf(page, heading string, count int) ([]string, error) {
	content, err := os.ReadFile(filepath.Join(apiserver.Repository(), page))
	if err != nil {
		return nil, err
	}
	blocks := blocksBelow(heading, string(content))
	if len(blocks) != count {
		return nil, fmt.Errorf("%q in %s has %d blocks, not %d", heading, page, len(blocks), count)
	}
	return blocks, nil
}

// blocksBelow is what a text of Markdown has in fences between a heading and the next one.
func blocksBelow(heading, text string) (blocks []string) {
	_, section, _ := strings.Cut(text, "\n"+heading)
	for {
		before, rest, opened := strings.Cut(section, "\n```")
		if !opened || strings.Contains(before, "\n#") {
			return blocks
		}
		_, rest, _ = strings.Cut(rest, "\n")
		block, rest, _ := strings.Cut(rest, "\n```")
		blocks, section = append(blocks, block), rest
	}
}

// Type has a shell run what an administrator types, with kubectl, the programs of bin and a kubeconfig.
// The overlay is that of the nodes here.
func (c *Cluster) Type(ctx context.Context, commands string) (string, error) {
	kubectl, err := apiserver.Binary("kubectl")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	shell.WaitDelay = childrensDelay
	shell.Dir = apiserver.Repository()
	shell.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), "PATH="+filepath.Dir(kubectl)+":"+filepath.Join(apiserver.Repository(), "bin")+":"+os.Getenv("PATH"),
		"OVERLAY="+c.OverlayFolder(), "MAKEFLAGS=", "MAKEOVERRIDES=")
	output, err := shell.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w:\n%s", err, output)
	}
	return string(output), err
}

// OverlayFolder is the overlay of the nodes here, as make deploy finds it.
func (c *Cluster) OverlayFolder() string {
	return filepath.Join("..", "test", "e2e", "manifests", c.Overlay)
}
