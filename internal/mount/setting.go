package mount

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Setting is an option of a file system, such as timeo with the value 600. Each
// goes to the kernel by itself, so that no value can carry a second one.
type Setting struct {
	Key string
	// Value is empty for an option that is just there, such as hard.
	Value string
}

// Create makes a mount of a file system with these options and attributes, such as
// MOUNT_ATTR_NOEXEC. It isn't mounted anywhere yet: Attach mounts it, and a crash before that
// drops it with its descriptor. It may wait for a server.
func Create(fsType string, settings []Setting, attributes int) (tree int, err error) {
	context, err := unix.Fsopen(fsType, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("opening the file system %s (is its module loaded?): %w", fsType, err)
	}
	defer unix.Close(context)
	for _, setting := range settings {
		if err := setting.apply(context); err != nil {
			return -1, fmt.Errorf("setting option %s=%s of %s: %w", setting.Key, setting.Value, fsType, explain(context, err))
		}
	}
	if err := unix.FsconfigCreate(context); err != nil {
		return -1, fmt.Errorf("opening a file system of type %s: %w", fsType, explain(context, err))
	}
	tree, err = unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, attributes)
	if err != nil {
		return -1, fmt.Errorf("making a mount of type %s: %w", fsType, err)
	}
	return tree, nil
}

// apply sets the option of a file system that is being opened: a descriptor of fsopen(2).
func (s Setting) apply(context int) error {
	if s.Value == "" {
		return unix.FsconfigSetFlag(context, s.Key)
	}
	return unix.FsconfigSetString(context, s.Key, s.Value)
}

// explain adds the messages of the kernel to an error.
func explain(context int, err error) error {
	var messages []string
	buffer := make([]byte, 1024)
	for {
		n, readErr := unix.Read(context, buffer)
		if readErr != nil || n == 0 {
			break
		}
		// Each message begins with a letter for how bad it is.
		_, message, _ := strings.Cut(strings.TrimSpace(string(buffer[:n])), " ")
		messages = append(messages, message)
	}
	if len(messages) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(messages, "; "))
}
