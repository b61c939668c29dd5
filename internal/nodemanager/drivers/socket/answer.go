package socket

import (
	"context"
	"fmt"
	"os"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// maxText bounds the texts of drivers, in bytes.
const maxText = 1024

// errorOf translates the error of a call.
func (d *Driver) errorOf(method string, err error) error {
	switch code, text := status.Code(err), message.Cut(status.Convert(err).Message(), maxText); code {
	case codes.Canceled:
		return fmt.Errorf("calling %s of CSI driver %s: %w", method, d.name, context.Canceled)
	case codes.DeadlineExceeded:
		return fmt.Errorf("CSI driver %s doesn't answer %s within %s: look into the log of its node plug-in on this node: %w",
			d.name, method, d.CallTimeout, context.DeadlineExceeded)
	case codes.Unavailable:
		return fmt.Errorf("CSI driver %s can't be reached for %s: look whether its node plug-in runs on this node (%s)", d.name, method, text)
	case codes.NotFound:
		return fmt.Errorf("CSI driver %s answers %s: %w (%s)", d.name, method, volumes.ErrNotFound, text)
	default:
		return fmt.Errorf("CSI driver %s answers %s with %s: %s", d.name, method, code, text)
	}
}

// isInfeasible reports whether a repetition of a failed expansion would fail, too.
func isInfeasible(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.OutOfRange, codes.NotFound:
		return true
	default:
		return false
	}
}

// undone checks the answer of a call that takes a volume away from a path. A driver that knows no
// such volume has nothing to take away, unless something is mounted there.
func (d *Driver) undone(method, path string, err error) error {
	unknown := status.Code(err) == codes.NotFound
	if err != nil && !unknown {
		return d.errorOf(method, err)
	}
	table, tableErr := d.Mounts.Table()
	switch {
	case tableErr != nil:
		return tableErr
	case len(table.Below(path)) == 0:
		return nil
	case unknown:
		return d.errorOf(method, err)
	default:
		return fmt.Errorf("CSI driver %s says that %s is done, and something is still mounted at %s: look into the log of its node plug-in on this node", d.name, method, path)
	}
}

// removeTarget removes what a driver left of a path at which nothing is mounted any more. It removes
// nothing that holds data.
func removeTarget(path string) error {
	info, err := os.Lstat(path)
	switch {
	case os.IsNotExist(err):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return volumes.RemoveEmptyDir(path)
	case info.Mode().IsRegular() && info.Size() > 0:
		return fmt.Errorf("the file %s has %d bytes, which no volume has: inspect it, and remove it by hand", path, info.Size())
	default:
		return os.Remove(path)
	}
}

// checkThere returns an error unless a volume is at a path: its pod would write to the node's own
// disk.
func (d *Driver) checkThere(spec volumes.Spec, path string) error {
	if spec.IsBlock() {
		if mounting.NumberAt(path) == "" {
			return fmt.Errorf("CSI driver %s says that volume %s is published, and %s is no block device", d.name, spec.Name(), path)
		}
		return nil
	}
	table, err := d.Mounts.Table()
	if err == nil && !table.IsMountPoint(path) {
		err = fmt.Errorf("CSI driver %s says that volume %s is published, and nothing is mounted at %s: "+
			"let its node plug-in have that folder as hostPath, at the same path, with mountPropagation Bidirectional", d.name, spec.Name(), path)
	}
	return err
}
