package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/stowage-dev/stowage/test/controlplane"
)

// childrensDelay is how long what a program started may still print when that is ended.
const childrensDelay = time.Second

func (b *bed) kubeconfig() string {
	return filepath.Join(b.Folder.ControlPlane(), "kubeconfigs", "admin")
}

// kubectl is the administrator's.
func (b *bed) kubectl(ctx context.Context, input string, arguments ...string) (string, error) {
	path, err := controlplane.Binary("kubectl")
	if err != nil {
		return "", err
	}
	return run(ctx, input, path, append([]string{"--kubeconfig=" + b.kubeconfig()}, arguments...)...)
}

// run runs a program, and returns what it prints.
func run(ctx context.Context, input, path string, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
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

// sh is what a shell's script prints in a pod.
func (s *scene) sh(pod, script string) (string, error) {
	output, err := s.bed.kubectl(s.Ctx, "", "exec", "--namespace="+s.namespace, pod, "--", "sh", "-c", script)
	return strings.TrimSpace(output), err
}

// does checks that a script succeeds in a pod.
func (s *scene) does(pod, script string) error {
	_, err := s.sh(pod, script)
	return err
}

// says checks what a script prints in a pod.
func (s *scene) says(pod, script, want string) error {
	got, err := s.sh(pod, script)
	if err == nil && got != want {
		err = fmt.Errorf("%q in %s prints %q, not %q", script, pod, got, want)
	}
	return err
}

// refuses checks that a script fails in a pod, with such a message.
func (s *scene) refuses(pod, script, message string) error {
	_, err := s.sh(pod, script)
	if err == nil {
		return fmt.Errorf("%q in %s succeeds", script, pod)
	}
	if !strings.Contains(err.Error(), message) {
		return fmt.Errorf("it isn't for %q: %w", message, err)
	}
	return nil
}
