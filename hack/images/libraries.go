package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
)

// libraryFolders are where Debian's loader looks without being told, and where programs
// tell it to look for their own.
var libraryFolders = []string{"/usr/lib/*-linux-gnu", "/lib/*-linux-gnu", "/usr/lib", "/lib", "/usr/lib/ganesha"}

// addLibraries adds what the programs and libraries in the tree load, until nothing is
// missing, so that every program in it starts.
func (t tree) addLibraries() error {
	for {
		missing, err := t.missing()
		if err != nil || len(missing) == 0 {
			return err
		}
		for _, name := range missing {
			if err := t.copy(name); err != nil {
				return err
			}
		}
	}
}

// missing are the files that programs load, and that aren't there yet.
func (t tree) missing() ([]string, error) {
	var missing []string
	for name, file := range t {
		loaded, err := loads(file.content)
		if err != nil {
			return nil, fmt.Errorf("looking what %s loads: %w", name, err)
		}
		for _, library := range loaded {
			if _, known := t[place(library)]; !known {
				missing = append(missing, library)
			}
		}
	}
	return missing, nil
}

// loads are the paths of the loader and the libraries that a program needs; none for
// what is no program.
func loads(content []byte) ([]string, error) {
	program, err := elf.NewFile(bytes.NewReader(content))
	var foreign *elf.FormatError
	if errors.As(err, &foreign) || errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer program.Close()
	needed, err := program.ImportedLibraries()
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, name := range needed {
		found, err := findLibrary(name)
		if err != nil {
			return nil, err
		}
		paths = append(paths, found)
	}
	loader, err := loaderOf(program)
	if err != nil || loader == "" {
		return paths, err
	}
	return append(paths, loader), nil
}

// loaderOf is the path of a program's loader; "" for a library, or a static program.
func loaderOf(program *elf.File) (string, error) {
	for _, segment := range program.Progs {
		if segment.Type != elf.PT_INTERP {
			continue
		}
		name, err := io.ReadAll(segment.Open())
		return strings.TrimRight(string(name), "\x00"), err
	}
	return "", nil
}

// findLibrary is the path of a library.
func findLibrary(name string) (string, error) {
	for _, pattern := range libraryFolders {
		found, err := filepath.Glob(filepath.Join(pattern, name))
		if err != nil {
			return "", err
		}
		if len(found) > 0 {
			return found[0], nil
		}
	}
	return "", fmt.Errorf("there is no library %s in %v: %w", name, libraryFolders, fs.ErrNotExist)
}
