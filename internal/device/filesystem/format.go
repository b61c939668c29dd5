package filesystem

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/stowage-dev/stowage/internal/device"
)

// Format makes a file system on a device, or in an image, of this many bytes. It leaves
// anything that it recognises as it is: that is ErrFormatted. After an error there may be half
// a file system.
func (f FileSystems) Format(ctx context.Context, path, fsType string, bytes int64) error {
	if err := f.CheckType(fsType, bytes); err != nil {
		return err
	}
	found, err := f.Probe(ctx, path)
	if err != nil {
		return err
	}
	if found != "" {
		return fmt.Errorf("formatting %s: %w: %s", path, device.ErrFormatted, found)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	arguments := kinds[fsType].format
	if info.Mode().IsRegular() {
		arguments = kinds[fsType].formatImage
	}
	return f.make(ctx, path, fsType, arguments)
}

// make makes a file system, whatever was there.
func (f FileSystems) make(ctx context.Context, path, fsType string, arguments []string) error {
	arguments = append(slices.Clone(arguments), path)
	output, err := f.programs(ctx).Command("mkfs."+fsType, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("formatting %s as %s: %w: %s", path, fsType, orCause(ctx, err), output)
	}
	return nil
}

// Remake makes a file system where an earlier Format didn't finish. It doesn't probe: the
// caller knows that the content is Format's.
func (f FileSystems) Remake(ctx context.Context, path, fsType string, bytes int64) error {
	if err := f.CheckType(fsType, bytes); err != nil {
		return err
	}
	arguments := slices.Clone(kinds[fsType].format)
	if fsType == "xfs" {
		arguments = append(arguments, "-f")
	}
	return f.make(ctx, path, fsType, arguments)
}
