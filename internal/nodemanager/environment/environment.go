// Package environment evaluates the variables of a container that a subPathExpr names. The node
// manager calls it before it mounts a part of a volume.
//
// Only the variables of the expression are read. Values may be secret: they are in no error and
// in no log.
package environment

import (
	"context"
	"fmt"
)

// Path returns the value of a subPathExpr. A variable that doesn't exist, or is empty, is an error
// that names it.
func (e Of) Path(ctx context.Context, expression string) (string, error) {
	if e.Reader == nil {
		e.Reader = unread{}
	}
	scope := scope{Of: e, known: map[int]string{}}
	path, err := expand(expression, func(name string) (string, error) {
		value, found, err := scope.lookUp(ctx, name, len(e.Container.Env))
		if err == nil && (!found || value == "") {
			err = fmt.Errorf("variable %s isn't set, or is empty: set it in env or envFrom of container %s", name, e.Container.Name)
		}
		return value, err
	})
	if err != nil {
		return "", fmt.Errorf("subPathExpr %s: %w", expression, err)
	}
	return path, nil
}

// lookUp returns the value of a variable for the one at an index of env. It is that of the last one
// before it, or else of envFrom.
func (s scope) lookUp(ctx context.Context, name string, before int) (value string, found bool, err error) {
	for i := before - 1; i >= 0; i-- {
		if s.Container.Env[i].Name != name {
			continue
		}
		if value, found, err = s.at(ctx, i); found || err != nil {
			return value, found, err
		}
	}
	return s.from(ctx, name)
}

// at returns the value of one variable of env. A missing optional one isn't found.
func (s scope) at(ctx context.Context, i int) (value string, found bool, err error) {
	if value, found = s.known[i]; found {
		return value, true, nil
	}
	variable := s.Container.Env[i]
	if variable.Value != "" || variable.ValueFrom == nil {
		value, err = expand(variable.Value, func(name string) (string, error) {
			value, found, err := s.lookUp(ctx, name, i)
			if err == nil && !found {
				return reference(name), nil
			}
			return value, err
		})
		found = true
	} else {
		value, found, err = s.read(ctx, variable.ValueFrom)
	}
	if err != nil {
		return "", false, fmt.Errorf("variable %s: %w", variable.Name, err)
	}
	if found {
		s.known[i] = value
	}
	return value, found, nil
}
