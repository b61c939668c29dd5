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

// Apply sets the option of a file system that is being opened: a descriptor of fsopen(2).
func (s Setting) Apply(context int) error {
	if s.Value == "" {
		return unix.FsconfigSetFlag(context, s.Key)
	}
	return unix.FsconfigSetString(context, s.Key, s.Value)
}

// Explain adds the messages of the kernel to an error.
func Explain(context int, err error) error {
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
