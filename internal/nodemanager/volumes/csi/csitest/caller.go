package csitest

import (
	"path/filepath"

	"k8s.io/utils/exec"

	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	localdriver "github.com/stowage-dev/stowage/internal/nodemanager/drivers/local"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi"
)

// NewCaller returns a Caller for an agent whose folder is root. It calls the local driver, whose
// volumes lie below base, and others.
func NewCaller(root, base string, others ...drivers.Driver) (*csi.Caller, error) {
	kernel := mount.Kernel{}
	local, err := localdriver.New(kernel, filesystem.NewFileSystems(exec.New()), localdriver.Volumes{Base: base}, filepath.Join(root, "staged", "local"))
	if err != nil {
		return nil, err
	}
	return csi.NewCaller(csi.CallerOptions{Mounter: kernel, Root: root, Drivers: append(others, local)})
}
