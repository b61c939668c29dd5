package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Table has the rows of one kind by path, and knows which changed since they were
// written. Rows go in and out by value; what they point to is replaced, not changed.
type Table[T any] struct {
	Rows    map[string]T
	changed map[string]struct{}
}

// anyTable is a table of any kind, as the journal sees it.
type anyTable interface {
	// changes returns the rows that changed; nil for those that are gone.
	changes() (map[string]*json.RawMessage, error)
	// all returns all rows.
	all() (map[string]*json.RawMessage, error)
	// load takes a row from the journal; nil for one that is gone.
	load(path string, row *json.RawMessage) error
	// written forgets what changed.
	written()
}

// Get returns the row at a path.
func (t *Table[T]) Get(path string) (row T, found bool) {
	row, found = t.Rows[path]
	return row, found
}

// Put adds the row at a path, or replaces it.
func (t *Table[T]) Put(path string, row T) {
	if t.Rows == nil {
		t.Rows = map[string]T{}
	}
	t.Rows[path] = row
	t.mark(path)
}

// Remove removes the row at a path. A path without a row is no error.
func (t *Table[T]) Remove(path string) {
	delete(t.Rows, path)
	t.mark(path)
}

func (t *Table[T]) mark(path string) {
	if t.changed == nil {
		t.changed = map[string]struct{}{}
	}
	t.changed[path] = struct{}{}
}

// Below returns the paths of the rows of a collection, in order.
func (t *Table[T]) Below(collection string) []string {
	var paths []string
	for path := range t.Rows {
		if strings.HasPrefix(path, collection+"/") {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

func (t *Table[T]) changes() (map[string]*json.RawMessage, error) {
	return t.encode(maps.Keys(t.changed))
}

func (t *Table[T]) all() (map[string]*json.RawMessage, error) {
	return t.encode(maps.Keys(t.Rows))
}

func (t *Table[T]) encode(paths func(func(string) bool)) (map[string]*json.RawMessage, error) {
	encoded := map[string]*json.RawMessage{}
	for path := range paths {
		row, found := t.Rows[path]
		if !found {
			encoded[path] = nil
			continue
		}
		text, err := json.Marshal(row)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", path, err)
		}
		encoded[path] = (*json.RawMessage)(&text)
	}
	return encoded, nil
}

func (t *Table[T]) load(path string, text *json.RawMessage) error {
	if text == nil {
		delete(t.Rows, path)
		return nil
	}
	var row T
	if err := json.Unmarshal(*text, &row); err != nil {
		return fmt.Errorf("decoding %s: %w", path, err)
	}
	if t.Rows == nil {
		t.Rows = map[string]T{}
	}
	t.Rows[path] = row
	return nil
}

func (t *Table[T]) written() { t.changed = nil }
