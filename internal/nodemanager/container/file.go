package container

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

const (
	// FileName is the name of a description in the directory of its container.
	FileName = "mounts.json"
	// unfinished is its name until all of it is written.
	unfinished = ".mounts.json.new"

	fileMode = 0o640
	dirMode  = 0o750
)

// Write writes a description into a directory, and makes the directory. A reader sees all of
// the file or none of it. An unchanged file isn't written.
func Write(dir string, description Description) error {
	content, err := json.MarshalIndent(description, "", "  ")
	if err != nil {
		return err
	}
	content = append(content, '\n')
	path := filepath.Join(dir, FileName)
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, content) {
		return nil
	}
	if err := errors.Join(os.MkdirAll(dir, dirMode), replace(dir, content)); err != nil {
		return fmt.Errorf("writing a container's mounts: %w", err)
	}
	return nil
}

func replace(dir string, content []byte) error {
	beside := filepath.Join(dir, unfinished)
	if err := removeFile(beside); err != nil {
		return err
	}
	if err := os.WriteFile(beside, content, fileMode); err != nil {
		return err
	}
	if err := os.Chmod(beside, fileMode); err != nil {
		return err
	}
	return os.Rename(beside, filepath.Join(dir, FileName))
}

// Withdraw removes a description, so that no container starts without its volumes. The
// directory stays.
func Withdraw(dir string) error {
	if err := errors.Join(removeFile(filepath.Join(dir, FileName)), removeFile(filepath.Join(dir, unfinished))); err != nil {
		return fmt.Errorf("withdrawing a container's mounts: %w", err)
	}
	return nil
}

// Remove removes a description and its directory. Any other file there stays, and is an error.
func Remove(dir string) error {
	if err := Withdraw(dir); err != nil {
		return err
	}
	return volumes.RemoveEmptyDir(dir)
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
