package csi

import (
	"path/filepath"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
)

// checkID returns what is wrong with a volume's id. Its syntax is the driver's to check.
func checkID(id string) error {
	if id == "" {
		return status.Error(codes.InvalidArgument, "volume_id is missing")
	}
	return nil
}

// checkPath returns what is wrong with a path in a field of a request.
func checkPath(field, path string) error {
	switch {
	case path == "":
		return status.Errorf(codes.InvalidArgument, "%s is missing", field)
	case !filepath.IsAbs(path):
		return status.Errorf(codes.InvalidArgument, "%s must be an absolute path, and not %q", field, path)
	case filepath.Clean(path) == "/":
		return status.Errorf(codes.InvalidArgument, "%s must not be /", field)
	}
	return nil
}

// checkMountPath returns what is wrong with a path at which a volume is to be mounted or
// unmounted. The mount table doesn't have a path in another spelling. Outside of the
// kubelet's folder only this process may see what is mounted, and pods would write to the
// node's own disk.
func (n *Node) checkMountPath(field, path string) error {
	if err := checkPath(field, path); err != nil {
		return err
	}
	if filepath.Clean(path) != path {
		return status.Errorf(codes.InvalidArgument, "%s must be %q, without parts that lead nowhere, and not %q", field, filepath.Clean(path), path)
	}
	below, err := filepath.Rel(n.within, path)
	if err != nil || below == "." || !filepath.IsLocal(below) {
		return status.Errorf(codes.InvalidArgument, "%s %s isn't in %s: let the node agent's --kubelet-dir be the kubelet's --root-dir, letter by letter",
			field, path, n.within)
	}
	return nil
}

// checkClaimed refuses the id of a pod's own volume where a claim's is expected.
// NodeUnpublishVolume knows a pod's own volume by its id, and removes its data.
func (n *Node) checkClaimed(id string) error {
	if inliner, serves := n.driver.(drivers.Inliner); serves && inliner.IsInline(id) {
		return status.Errorf(codes.InvalidArgument, "volume_id %q is that of a pod's own volume, and not a claim's", id)
	}
	return nil
}

// checkExisting returns what is wrong with the path of a mounted volume. No volume is at a
// relative path, whatever folder this process runs in.
func checkExisting(field, path string) error {
	if path != "" && !filepath.IsAbs(path) {
		return status.Errorf(codes.NotFound, "no volume is at %s %q: it isn't an absolute path", field, path)
	}
	return checkPath(field, path)
}

// checkCapability returns what is wrong with how a volume is to be used.
func checkCapability(capability *csispec.VolumeCapability) error {
	switch {
	case capability == nil:
		return status.Error(codes.InvalidArgument, "volume_capability is missing")
	case capability.GetBlock() == nil && capability.GetMount() == nil:
		return status.Error(codes.InvalidArgument, "volume_capability.access_type is missing: it is block or mount")
	case accessModes(capability) == nil:
		return status.Errorf(codes.InvalidArgument, "volume_capability.access_mode is missing, or unknown: %s", capability.GetAccessMode().GetMode())
	case capability.GetMount().GetVolumeMountGroup() != "":
		return status.Error(codes.InvalidArgument, "volume_capability.mount.volume_mount_group isn't supported: the kubelet sets a volume's group")
	}
	return nil
}
