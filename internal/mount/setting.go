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

// Apply gives the setting to a file system that is being opened: a descriptor of fsopen(2).
func (s Setting) Apply(context int) error {
	if s.Value == "" {
		return unix.FsconfigSetFlag(context, s.Key)
	}
	return unix.FsconfigSetString(context, s.Key, s.Value)
}

// Explain adds what the kernel has to say of an error.
func Explain(context int, err error) error {
	var said []string
	buffer := make([]byte, 1024)
	for {
		n, readErr := unix.Read(context, buffer)
		if readErr != nil || n == 0 {
			break
		}
		// Each message begins with a letter for how bad it is.
		_, message, _ := strings.Cut(strings.TrimSpace(string(buffer[:n])), " ")
		said = append(said, message)
	}
	if len(said) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(said, "; "))
}
