package csi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stowage-dev/stowage/internal/mount"
)

// records are what is known of the staged volumes of one driver, a file for each. Handles
// are anything, and so files are named after their hash.
type records[T any] struct{ folder string }

func newRecords[T any](folder string) (records[T], error) {
	if err := os.MkdirAll(folder, mountPointMode); err != nil {
		return records[T]{}, fmt.Errorf("making the folder of staged volumes: %w", err)
	}
	return records[T]{folder}, nil
}

func (r records[T]) path(handle string) string {
	return filepath.Join(r.folder, keyOf(handle)+".json")
}

// keyOf names what is known of a volume.
func keyOf(handle string) string {
	sum := sha256.Sum256([]byte(handle))
	return hex.EncodeToString(sum[:])
}

// find reads a record; nil if there is none.
func (r records[T]) find(handle string) (*T, error) {
	found := new(T)
	content, err := os.ReadFile(r.path(handle))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(content, found)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what is known of staged volume %s: %w", handle, err)
	}
	return found, nil
}

// write writes a record, of which nobody ever sees half.
func (r records[T]) write(handle string, record T) error {
	content, err := json.Marshal(record)
	if err == nil {
		err = replaceDurably(r.path(handle), content)
	}
	if err != nil {
		return fmt.Errorf("noting that volume %s is staged: %w", handle, err)
	}
	return nil
}

// remove removes a record, and what a crash left of one.
func (r records[T]) remove(handle string) error {
	for _, file := range []string{r.path(handle) + unfinished, r.path(handle)} {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing what was known of staged volume %s: %w", handle, err)
		}
	}
	return nil
}

// unfinished ends the name of a file that isn't wholly written.
const unfinished = ".new"

// replaceDurably gives a file its content, all at once, also for who looks after a loss
// of power.
func replaceDurably(path string, content []byte) error {
	if err := writeDurably(path+unfinished, content); err != nil {
		return err
	}
	if err := os.Rename(path+unfinished, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return mount.SyncDir(dir)
}
