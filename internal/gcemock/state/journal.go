package state

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// compactAfter is how many bytes are appended before the journal is written again.
const compactAfter = 16 << 20

// journal is a file of lines, each with all rows that changed at once. A line that a
// crash cut short is as if it had never been written.
type journal struct {
	path    string
	file    *os.File
	written int64
	// torn is set after a line that may be there in part.
	torn bool
}

// entry is a line: rows by table and path.
type entry map[string]map[string]*json.RawMessage

// openJournal reads a journal into tables.
func openJournal(path string, tables map[string]anyTable) (*journal, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if err := replay(file, tables); err != nil {
		file.Close()
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return &journal{path: path, file: file}, nil
}

func replay(file io.Reader, tables map[string]anyTable) error {
	reader := bufio.NewReader(file)
	for number := 1; ; number++ {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = replayLine(line, tables)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
}

func replayLine(line []byte, tables map[string]anyTable) error {
	var changes entry
	if err := json.Unmarshal(line, &changes); err != nil {
		return err
	}
	for name, rows := range changes {
		table, known := tables[name]
		if !known {
			return fmt.Errorf("there are no %s", name)
		}
		for path, row := range rows {
			if err := table.load(path, row); err != nil {
				return err
			}
		}
	}
	return nil
}

// append writes the rows that changed.
func (j *journal) append(tables map[string]anyTable) error {
	line, err := encode(tables, anyTable.changes)
	if line == nil || err != nil {
		return err
	}
	if j.torn || j.written > compactAfter {
		return j.compact(tables)
	}
	// One write, so that a crash leaves all of the line or a part without its end.
	size, err := j.file.Write(line)
	if err != nil {
		// What comes after a part of a line would be lost with it.
		j.torn = true
		if failed := j.compact(tables); failed != nil {
			return errors.Join(fmt.Errorf("writing %s: %w", j.path, err), failed)
		}
		return nil
	}
	j.written += int64(size)
	for _, table := range tables {
		table.written()
	}
	return nil
}

// compact writes all rows to a new file, which takes the place of the old one.
func (j *journal) compact(tables map[string]anyTable) error {
	line, err := encode(tables, anyTable.all)
	if err != nil {
		return err
	}
	fresh, err := os.OpenFile(j.path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if _, err = fresh.Write(line); err == nil {
		err = fresh.Sync()
	}
	if err == nil {
		err = os.Rename(fresh.Name(), j.path)
	}
	if err != nil {
		fresh.Close()
		return fmt.Errorf("writing %s: %w", j.path, err)
	}
	j.file.Close()
	j.file, j.written, j.torn = fresh, 0, false
	for _, table := range tables {
		table.written()
	}
	return nil
}

// encode makes a line of some rows of each table; nil if there are none.
func encode(tables map[string]anyTable, rows func(anyTable) (map[string]*json.RawMessage, error)) ([]byte, error) {
	changes := entry{}
	for name, table := range tables {
		some, err := rows(table)
		if err != nil {
			return nil, err
		}
		if len(some) > 0 {
			changes[name] = some
		}
	}
	if len(changes) == 0 {
		return nil, nil
	}
	var line bytes.Buffer
	err := json.NewEncoder(&line).Encode(changes)
	return line.Bytes(), err
}
