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
	return NewCallerOf(csi.CallerOptions{Root: root, Drivers: others}, base)
}

// NewCallerOf is NewCaller with other options.
func NewCallerOf(options csi.CallerOptions, base string) (*csi.Caller, error) {
	kernel := mount.Kernel{}
	local, err := localdriver.New(kernel, filesystem.NewFileSystems(exec.New()), localdriver.Volumes{Base: base}, filepath.Join(options.Root, "staged", "local"))
	if err != nil {
		return nil, err
	}
	options.Mounter, options.Drivers = kernel, append(options.Drivers, local)
	return csi.NewCaller(options)
}
