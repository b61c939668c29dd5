package inspect

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/limit"
	"github.com/stowage-dev/stowage/internal/node/localdisk/usage"
)

// checkDirectory inspects a directory. Without a quota it finds no usage: that needs a walk.
func (r *Report) checkDirectory(dir *os.File, volume layout.Volume) error {
	if err := checkReads(dir); err != nil {
		return err
	}
	there, err := limit.Find(dir, volume)
	if there == nil || err != nil {
		return err
	}
	r.Enforced = true
	r.Usage = &usage.Usage{Bytes: there.Usage.Bytes, Size: there.Usage.Limit.Bytes, Inodes: &there.Usage.Inodes}
	r.mostInodes = there.Usage.Limit.Inodes
	return nil
}

// checkReads returns an error where a directory can't be read.
func checkReads(dir *os.File) error {
	readable, err := os.Open(device.PathOf(dir))
	if err != nil {
		return fmt.Errorf("reading %s: %w", dir.Name(), err)
	}
	defer readable.Close()
	if _, err := readable.Readdirnames(1); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading %s: %w", dir.Name(), err)
	}
	return nil
}
