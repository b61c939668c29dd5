package main

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// shell are the packages of the Dockerfile's base image for a look into a container by hand.
var shell = []string{"coreutils", "dash"}

// heavy is a program that loads 40 MB of libraries, for one that checks names in Unicode.
const heavy = "xfs_scrub"

var (
	installation = regexp.MustCompile(`(?s)apt-get install((?:\s+\\?\s*[-a-z0-9.+]+)+)`)
	// configuration is what programs look up: not when to run, nor as which user.
	configuration = regexp.MustCompile(`^/etc/[^/]+\.conf$`)
)

func packagesOf(dockerfile string) ([]string, error) {
	_, stage, found := strings.Cut(dockerfile, " AS node-agent\n")
	if !found {
		return nil, errors.New("the Dockerfile has no target node-agent")
	}
	stage, _, _ = strings.Cut(stage, "\nFROM ")
	installed := installation.FindStringSubmatch(stage)
	if installed == nil {
		return nil, errors.New("the Dockerfile installs no packages for its target node-agent")
	}
	names := slices.DeleteFunc(strings.Fields(installed[1]), func(word string) bool {
		return word == `\` || strings.HasPrefix(word, "-")
	})
	return names, nil
}

// addPackages adds the programs of packages that are installed on this machine, and
// what these programs need. Scripts are left out: nothing here says what they need.
func (t tree) addPackages(ctx context.Context, packages ...string) error {
	for _, name := range packages {
		files, err := filesOf(ctx, name)
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := t.addFile(ctx, file); err != nil {
				return fmt.Errorf("package %s: %w", name, err)
			}
		}
	}
	return nil
}

func filesOf(ctx context.Context, name string) ([]string, error) {
	output, err := exec.CommandContext(ctx, "dpkg", "-L", name).Output()
	if err != nil {
		return nil, fmt.Errorf("listing the files of Debian's package %s, which must be installed: %w", name, err)
	}
	return strings.Fields(string(output)), nil
}

func (t tree) addFile(ctx context.Context, name string) error {
	if configuration.MatchString(name) {
		return t.copy(name)
	}
	folder, base := filepath.Base(filepath.Dir(name)), filepath.Base(name)
	if folder != "bin" && folder != "sbin" || base == heavy {
		return nil
	}
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist): // The machine was made without it.
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return nil
	}
	if program, err := elf.Open(name); err != nil {
		return nil //nolint:nilerr // a script
	} else if err := program.Close(); err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return t.copyProgram(ctx, name)
	}
	to, err := os.Readlink(name)
	if err != nil {
		return err
	}
	t.link(name, to)
	return nil
}

// certificates are those of the authorities that Debian trusts, without any that this
// machine trusts beside them.
func certificates() ([]byte, error) {
	files, err := filepath.Glob("/usr/share/ca-certificates/mozilla/*.crt")
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errors.New("there are no certificates of authorities: install Debian's package ca-certificates")
	}
	var all bytes.Buffer
	for _, file := range files {
		one, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all.Write(one)
	}
	return all.Bytes(), nil
}

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

func librariesIn(output string) (paths []string, err error) {
	if strings.Contains(output, "not found") {
		return nil, fmt.Errorf("%w: %s", fs.ErrNotExist, output)
	}
	for _, library := range loaded.FindAllStringSubmatch(output, -1) {
		paths = append(paths, library[1])
	}
	return paths, nil
}
