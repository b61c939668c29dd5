package kubenode

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stowage-dev/stowage/test/harness/cluster"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

const (
	namespace     = "k8s.io"
	kubeletHealth = "http://127.0.0.1:10248/healthz"
	// callTimeout is how long one call of containerd may take on a node that waits for processors, and askTimeout
	// how long what consists of several.
	callTimeout = 4 * time.Minute
	askTimeout  = 5 * time.Minute
)

// Control is what Node.Do does. Programs are killed as a crash does it.
type Control string

// All that can be done.
const (
	KillKubelet     Control = "kill the kubelet"
	StartKubelet    Control = "start the kubelet"
	KillContainerd  Control = "kill containerd"
	StartContainerd Control = "start containerd"
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
func (k *Kubernetes) Import(archive string, _ *guest.Nothing) error {
	return ctr(context.Background(), "images", "import", archive)
}

// Tagging is a further name for an image.
type Tagging struct{ Image, As string }

// Tag gives an image a further name.
func (k *Kubernetes) Tag(request Tagging, _ *guest.Nothing) error {
	return ctr(context.Background(), "images", "tag", "--force", request.Image, request.As)
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
	return k.kubelet.StartReady(ctx)
}

func labels(all map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		pairs = append(pairs, key+"="+all[key])
	}
	return strings.Join(pairs, ",")
}

// Control is Node.Do.
func (k *Kubernetes) Control(what Control, _ *guest.Nothing) error {
	ctx := context.Background() // a call has none: it ends with the host
	does := map[Control]func() error{
		KillKubelet: k.kubelet.Kill, StartKubelet: func() error { return k.kubelet.StartReady(ctx) },
		KillContainerd: k.containerd.Kill, StartContainerd: func() error { return k.awaitContainerd(ctx) },
	}[what]
	if k.kubelet == nil || does == nil {
		return fmt.Errorf("it can't %s", what)
	}
	return does()
}
