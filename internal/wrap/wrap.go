// Package wrap adds context to errors: the operation that failed.
package wrap

import "fmt"

// Error adds context to an error. Nil stays nil.
func Error(err error, format string, arguments ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(arguments, err)...)
}
