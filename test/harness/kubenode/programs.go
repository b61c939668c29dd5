package kubenode

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stowage-dev/stowage/test/harness/cluster"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

const (
	// namespace is where the kubelet's images and containers are in containerd.
	namespace = "k8s.io"
	// kubeletHealth answers once the kubelet works.
	kubeletHealth = "http://127.0.0.1:10248/healthz"
	// callTimeout is how long a call of containerd may take.
	callTimeout = 80 * time.Second
)

func (k *Kubernetes) startContainerd(ctx context.Context, settings Settings) error {
	k.containerd = cluster.NewProgram(cluster.ProgramOptions{
		Name: "containerd", Path: "/usr/bin/containerd",
		LogFile:   filepath.Join(settings.Logs, settings.Name+"-containerd.log"),
		Arguments: []string{"--config", filepath.Join(dir, "containerd.toml")},
	})
	return k.awaitContainerd(ctx)
}

func (k *Kubernetes) awaitContainerd(ctx context.Context) error {
	if err := k.containerd.Start(); err != nil {
		return err
	}
	return scenario.Eventually(ctx, func() error {
		select {
		case <-k.containerd.Ended():
			return fmt.Errorf("containerd ended: %w", k.containerd.Err())
		default:
			return ctr(ctx, "version")
		}
	})
}

// Import has containerd take the images of an archive.
func (k *Kubernetes) Import(archive string, _ *Nothing) error {
	return ctr(context.Background(), "images", "import", archive)
}

// Tagging is a further name for an image.
type Tagging struct{ Image, As string }

// Tag gives an image a further name.
func (k *Kubernetes) Tag(asked Tagging, _ *Nothing) error {
	return ctr(context.Background(), "images", "tag", "--force", asked.Image, asked.As)
}

func ctr(ctx context.Context, arguments ...string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	output, err := exec.CommandContext(ctx, "ctr", append([]string{"--namespace", namespace}, arguments...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr %s: %w: %s", strings.Join(arguments, " "), err, output)
	}
	return nil
}

func (k *Kubernetes) startKubelet(ctx context.Context, settings Settings) error {
	k.kubelet = cluster.NewProgram(cluster.ProgramOptions{
		Name: "kubelet", Path: settings.Kubelet, Ready: kubeletHealth,
		LogFile: filepath.Join(settings.Logs, settings.Name+"-kubelet.log"),
		Arguments: []string{
			"--config=" + filepath.Join(dir, "kubelet.yaml"), "--kubeconfig=" + settings.Kubeconfig,
			"--hostname-override=" + settings.Name, "--node-ip=" + settings.Address,
			"--node-labels=" + labels(settings.Labels), "--v=2",
		},
	})
	return k.awaitKubelet(ctx)
}

func labels(all map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		pairs = append(pairs, key+"="+all[key])
	}
	return strings.Join(pairs, ",")
}

func (k *Kubernetes) awaitKubelet(ctx context.Context) error {
	if err := k.kubelet.Start(); err != nil {
		return err
	}
	return k.kubelet.AwaitReady(ctx)
}

// KillKubelet ends the kubelet as a crash does. Containers go on.
func (k *Kubernetes) KillKubelet(Nothing, *Nothing) error {
	return k.asNode(func() error { return k.kubelet.Kill() })
}

// StopKubelet asks the kubelet to end. Containers go on.
func (k *Kubernetes) StopKubelet(Nothing, *Nothing) error {
	return k.asNode(func() error { return k.kubelet.Stop() })
}

// StartKubelet starts the kubelet again.
func (k *Kubernetes) StartKubelet(Nothing, *Nothing) error {
	return k.asNode(func() error { return k.awaitKubelet(context.Background()) })
}

// KillContainerd ends containerd as a crash does. Containers go on.
func (k *Kubernetes) KillContainerd(Nothing, *Nothing) error {
	return k.asNode(func() error { return k.containerd.Kill() })
}

// StartContainerd starts containerd again.
func (k *Kubernetes) StartContainerd(Nothing, *Nothing) error {
	return k.asNode(func() error { return k.awaitContainerd(context.Background()) })
}

func (k *Kubernetes) asNode(do func() error) error {
	if k.kubelet == nil {
		return errors.New("it isn't a node")
	}
	return do()
}
