package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/apiserver"
	"github.com/stowage-dev/stowage/test/controlplane"
)

const (
	// inCluster is the heading in README of the quick start in a cluster.
	inCluster = "### In a cluster"
	// itsImage is what its pod runs, as nodes know it.
	itsImage = "docker.io/library/busybox:stable"
)

// quickStart is what README has people type to install Stowage, and to use it. That to
// build images and push them comes before: nodes here have them already, from archives.
func quickStart() (install, use string, err error) {
	readme, err := os.ReadFile(filepath.Join(apiserver.Repository(), "README.md"))
	if err != nil {
		return "", "", err
	}
	blocks := blocksBelow(inCluster, string(readme))
	if len(blocks) != 3 {
		return "", "", fmt.Errorf("%q in README has %d blocks, not three", inCluster, len(blocks))
	}
	return blocks[1], blocks[2], nil
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

// types has a shell do what an administrator types, who has kubectl and a kubeconfig. The
// overlay is that of the nodes here.
func (b *bed) types(ctx context.Context, commands string) (string, error) {
	kubectl, err := controlplane.Binary("kubectl")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	shell.WaitDelay = childrensDelay
	shell.Dir = apiserver.Repository()
	shell.Env = append(os.Environ(), "KUBECONFIG="+b.kubeconfig(), "PATH="+filepath.Dir(kubectl)+":"+os.Getenv("PATH"),
		"OVERLAY="+b.overlayFolder(), "MAKEFLAGS=", "MAKEOVERRIDES=")
	output, err := shell.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w:\n%s", err, output)
	}
	return string(output), err
}

// overlayFolder is the overlay of the nodes here, as make deploy finds it.
func (b *bed) overlayFolder() string {
	return filepath.Join("..", "test", "e2e", "manifests", b.overlay)
}

// readme: who types what README says in a stock cluster sees a pod write to a volume.
func readme(s *scene) {
	s.Do("README's quick start works, as it is typed", func() error {
		_, use, err := quickStart()
		if err != nil {
			return err
		}
		output, err := s.bed.types(s.Ctx, use)
		if err == nil && !strings.Contains(output, " UTC ") {
			err = fmt.Errorf("it doesn't end with the date that the pod wrote:\n%s", output)
		}
		return err
	})
	s.Do("what it made goes, with the data", func() error {
		at := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: data}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: at}
		volume, err := s.volume(claim)
		at.Name = "writer"
		return errors.Join(err, s.remove(&corev1.Pod{ObjectMeta: at}, claim), s.gone(volume), s.backendGoes("local"))
	})
}

func (s *scene) backendGoes(name string) error {
	made := &stowagev1alpha1.StorageBackend{}
	made.Name = name
	return s.remove(made)
}
