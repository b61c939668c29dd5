package csi

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/csinode"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	bysocket "github.com/stowage-dev/stowage/internal/nodemanager/drivers/socket"
	"github.com/stowage-dev/stowage/internal/nodemanager/plugins"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// follower is a node without a kubelet, as far as drivers are concerned.
type follower struct {
	bysocket.Cluster
	mounted string
}

func (follower) CSIDriver(context.Context, string) (*storagev1.CSIDriver, error) { return nil, nil }
func (follower) Install(context.Context, csinode.Info) error                     { return nil }
func (follower) Remove(context.Context, string) error                            { return nil }
func (f follower) Table() (mount.Table, error)                                   { return mount.Table{{ID: 1, Path: f.mounted}}, nil }

// follow has drivers register in a folder as with a kubelet.
func (f follower) follow(t *testing.T, dir string) *bysocket.Registered {
	t.Helper()
	registered := bysocket.NewRegistered(bysocket.Options{Cluster: f, Mounts: f}, f)
	registry := plugins.New(plugins.Options{Folder: filepath.Join(dir, plugins.FolderName), IsReserved: drivers.IsOwn, Handler: registered})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- registry.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return registered
}

// ownDriver is one with the name of a driver of Stowage's.
type ownDriver struct{ plainDriver }

func (*ownDriver) Name() string { return stowagev1alpha1.LocalDriver }

func TestAnAgentThatFollowsPodsCallsADriverAsAKubeletDoes(t *testing.T) {
	driver := &plainDriver{}
	w := startWorld(t, driver, worldOptions{})
	staging, target := filepath.Join(w.dir, "globalmount"), filepath.Join(w.dir, "pod", "mount")
	for _, dir := range []string{staging, filepath.Dir(target)} {
		if err := os.Mkdir(dir, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	registered := follower{mounted: target}.follow(t, w.dir)
	await(t, "it is registered", func() error {
		_, err := registered.Find(driverName)
		return err
	})
	wantReady(t, w.Server)
	found, err := registered.Find(driverName)
	if err != nil {
		t.Fatal(err)
	}
	spec := volumes.Spec{Pod: &corev1.Pod{}, PersistentVolume: &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driverName, VolumeHandle: "a"}},
	}}}

	if err := found.Stage(t.Context(), spec, staging); err != nil {
		t.Fatal(err)
	}
	if err := found.Publish(t.Context(), spec, staging, target); err != nil {
		t.Fatal(err)
	}

	driver.wantCalls(t, "stage "+staging, "check a "+target, "publish "+staging+" "+target)
}

func TestAnAgentThatFollowsPodsTakesNoDriverUnderStowagesName(t *testing.T) {
	w := startWorld(t, &ownDriver{}, worldOptions{})
	registered := follower{}.follow(t, w.dir)

	wantUnready(t, w.Server, "served by this agent itself")

	if _, err := registered.Find(stowagev1alpha1.LocalDriver); err == nil {
		t.Error("it is registered")
	}
}
