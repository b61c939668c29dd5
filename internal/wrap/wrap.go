// Package wrap adds to errors what was being done.
package wrap

import "fmt"

// Error adds what was being done to an error, and nothing to none.
func Error(err error, format string, arguments ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(arguments, err)...)
}
