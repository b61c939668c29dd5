package volumes

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	// unfinished is the suffix of a record that isn't wholly written.
	unfinished = ".new"
	// recordMode lets the agent alone read and write records.
	recordMode = 0o600
)

// Records are the records of one driver's volumes that are staged for a kubelet: a file for each
// in a folder of the agent's own. Handles may contain anything, so each file is named after the
// handle's hash.
type Records[T any] struct{ folder string }

// NewRecords returns the records in a folder, and makes the folder if it doesn't exist.
func NewRecords[T any](folder string) (Records[T], error) {
	if err := os.MkdirAll(folder, mountPointMode); err != nil {
		return Records[T]{}, fmt.Errorf("making the folder of staged volumes: %w", err)
	}
	return Records[T]{folder}, nil
}

func (r Records[T]) path(handle string) string {
	sum := sha256.Sum256([]byte(handle))
	return filepath.Join(r.folder, hex.EncodeToString(sum[:])+".json")
}

// Find reads a record; nil if there is none.
func (r Records[T]) Find(handle string) (*T, error) {
	found, err := ReadRecord[T](r.path(handle))
	if err != nil {
		return nil, fmt.Errorf("reading the record of staged volume %s: %w", handle, err)
	}
	return found, nil
}

// Write writes a record atomically: a crash leaves the old content or the new one.
func (r Records[T]) Write(handle string, record T) error {
	if err := WriteRecord(r.path(handle), record); err != nil {
		return fmt.Errorf("recording that volume %s is staged: %w", handle, err)
	}
	return nil
}

// Remove removes a record, and what a crash left of an unfinished one.
func (r Records[T]) Remove(handle string) error {
	if err := RemoveRecord(r.path(handle)); err != nil {
		return fmt.Errorf("removing the record of staged volume %s: %w", handle, err)
	}
	return nil
}

// ReadRecord reads the record in a file; nil if there is none.
func ReadRecord[T any](path string) (*T, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	found := new(T)
	if err == nil {
		err = json.Unmarshal(content, found)
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// WriteRecord writes a record to a file. A crash leaves the old content or the new one.
func WriteRecord[T any](path string, record T) error {
	content, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return replaceDurably(path, content)
}

// RemoveRecord removes a record, and what a crash left of an unfinished one.
func RemoveRecord(path string) error {
	for _, file := range []string{path + unfinished, path} {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// replaceDurably replaces a file's content atomically, also across a loss of power.
func replaceDurably(path string, content []byte) error {
	file, err := os.OpenFile(path+unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, recordMode)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+unfinished, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
