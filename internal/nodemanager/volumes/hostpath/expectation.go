package hostpath

import (
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// expectation is what has to be at a hostPath of some type.
type expectation struct {
	kind corev1.HostPathType
	// what is its name, and mode its type bits. Empty: any kind.
	what string
	mode os.FileMode
	// advice is what to do if it doesn't exist.
	advice string
}

// modeOfFile is the type bits of a regular file.
const modeOfFile = os.FileMode(0)

var expectations = []expectation{
	{corev1.HostPathUnset, "", 0, "create it there"},
	{corev1.HostPathDirectoryOrCreate, "a directory", os.ModeDir, "create it there"},
	{corev1.HostPathDirectory, "a directory", os.ModeDir, "create the directory there, or give the hostPath type DirectoryOrCreate"},
	{corev1.HostPathFileOrCreate, "a file", modeOfFile, "the file is made only in a directory that is there: create that one"},
	{corev1.HostPathFile, "a file", modeOfFile, "create the file there, or give the hostPath type FileOrCreate"},
	{corev1.HostPathSocket, "a socket", os.ModeSocket, "start what listens on the socket"},
	{corev1.HostPathCharDev, "a character device", os.ModeDevice | os.ModeCharDevice, "load the driver of the device, or correct the path"},
	{corev1.HostPathBlockDev, "a block device", os.ModeDevice, "attach the device to the node, or correct the path"},
}

// expect returns what has to be at a hostPath of a type.
func expect(kind corev1.HostPathType) (expectation, error) {
	for _, expected := range expectations {
		if expected.kind == kind {
			return expected, nil
		}
	}
	return expectation{}, fmt.Errorf("hostPath with type %s is %w: use one that the Kubernetes documentation of hostPath lists", kind, volumes.ErrNotSupported)
}

// missing is the error of a path that doesn't exist.
func (e expectation) missing(path string) error {
	if e.kind == corev1.HostPathFileOrCreate {
		path = filepath.Dir(path)
	}
	return fmt.Errorf("the volume's hostPath: %s doesn't exist on this node: %s", path, e.advice)
}

// check returns an error unless the opened file is of the expected kind.
func (e expectation) check(file *os.File, path string) error {
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("inspecting the volume's hostPath: %w", err)
	}
	if e.what == "" || info.Mode().Type() == e.mode {
		return nil
	}
	return fmt.Errorf("the volume's hostPath has type %s, and %s on this node is %s, not %s: correct the path, or the type",
		e.kind, path, nameOf(info.Mode()), e.what)
}

// nameOf is the name of a kind of file.
func nameOf(mode os.FileMode) string {
	for _, expected := range expectations {
		if expected.what != "" && expected.mode == mode.Type() {
			return expected.what
		}
	}
	return "something else"
}
