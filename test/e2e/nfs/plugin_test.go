package nfs_test

import (
	"context"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/hack/uml"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi"
	"github.com/stowage-dev/stowage/test/harness/guest"
)

// pluginDir is where a node's volume type, driven directly, mounts things.
const pluginDir = "/run/plugin"

// Plugin is the node agent's volume type on a node, without the agent.
type Plugin struct{ plugin csi.Plugin }

// Volume is one volume of one pod.
type Volume struct {
	Pod    string
	Volume corev1.PersistentVolume
	Access mount.Access
}

// LoadModules gives the kernel an NFS client.
func (*Plugin) LoadModules(_ guest.Nothing, _ *guest.Nothing) error {
	return uml.LoadModules("nfs", "nfsv3", uml.NFSv4)
}

func dirOf(pod, volume string) string {
	return filepath.Join(pluginDir, "pods", pod, "volumes", "kubernetes.io~csi", volume)
}

func fileOf(pod, volume, name string) string {
	return filepath.Join(csi.Plugin{}.Path(dirOf(pod, volume)), name)
}

// Publish makes a volume visible for a pod, and says how long that took.
func (p *Plugin) Publish(request Volume, took *time.Duration) error {
	dir := dirOf(request.Pod, request.Volume.Name)
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return err
	}
	defer measure(took)()
	return p.plugin.Publish(context.Background(), volumes.Spec{PersistentVolume: &request.Volume, Access: request.Access}, dir)
}

// Unpublish takes it away.
func (p *Plugin) Unpublish(request Volume, took *time.Duration) error {
	defer measure(took)()
	return p.plugin.Unpublish(context.Background(), dirOf(request.Pod, request.Volume.Name))
}

func measure(took *time.Duration) func() {
	started := time.Now()
	return func() { *took = time.Since(started) }
}
