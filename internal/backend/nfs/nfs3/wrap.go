package nfs3

import (
	"fmt"
	"io/fs"

	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// wrap adds the operation and the path to an error.
func wrap(doing, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w", &fs.PathError{Op: doing, Path: tree.Printable(path), Err: err})
}
