package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// loaded is the path of a library, or of the loader, in what ldd prints.
var loaded = regexp.MustCompile(`(?m)^\s(?:\S+ => )?(/\S+) \(0x`)

// copyProgram adds one of this machine's programs or libraries, with all that it loads, so
// that it starts.
func (t tree) copyProgram(ctx context.Context, name string) error {
	ldd := exec.CommandContext(ctx, "ldd", name)
	ldd.Env = append(os.Environ(), "LC_ALL=C")
	output, err := ldd.CombinedOutput()
	if isStatic := strings.Contains(string(output), "not a dynamic executable"); err != nil && !isStatic {
		return fmt.Errorf("asking ldd what %s loads: %w: %s", name, err, output)
	}
	libraries, err := librariesIn(string(output))
	if err != nil {
		return fmt.Errorf("looking what %s loads: %w", name, err)
	}
	for _, file := range append(libraries, name) {
		if err := t.copy(file); err != nil {
			return err
		}
	}
	return nil
}

// librariesIn are the paths in what ldd prints.
func librariesIn(output string) (paths []string, err error) {
	if strings.Contains(output, "not found") {
		return nil, fmt.Errorf("%w: %s", fs.ErrNotExist, output)
	}
	for _, library := range loaded.FindAllStringSubmatch(output, -1) {
		paths = append(paths, library[1])
	}
	return paths, nil
}
