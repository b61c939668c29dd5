package controllers

import "fmt"

// wrap adds what was being done to an error, and nothing to none.
func wrap(err error, format string, arguments ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(arguments, err)...)
}
