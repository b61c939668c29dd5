package attach_test

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/test/harness/guest"
)

// Devices is what pods' processes do with block devices.
type Devices struct{}

// Block is a text at the beginning of a device.
type Block struct{ Path, Content string }

// Write writes it, and sees to it that it is stored.
func (Devices) Write(request Block, _ *guest.Nothing) error {
	device, err := os.OpenFile(request.Path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer device.Close()
	if _, err := device.WriteString(request.Content); err != nil {
		return err
	}
	return device.Sync()
}

// Read reads as many bytes as the text has.
func (Devices) Read(request Block, content *string) error {
	device, err := os.Open(request.Path)
	if err != nil {
		return err
	}
	defer device.Close()
	text := make([]byte, len(request.Content))
	_, err = io.ReadFull(device, text)
	*content = string(text)
	return err
}

// Capacity is how many bytes the file system at a path can hold, roughly.
func (Devices) Capacity(path string, bytes *int64) error {
	var stat unix.Statfs_t
	err := unix.Statfs(path, &stat)
	*bytes = int64(stat.Blocks) * stat.Bsize
	return err
}
