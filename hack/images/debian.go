package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// shell are the packages of the Dockerfile's base image for a look into a container by hand.
var shell = []string{"coreutils", "dash"}

const (
	// heavy is a program that loads 40 MB of libraries, for one that checks names in Unicode.
	heavy        = "xfs_scrub"
	packageLists = "/var/lib/dpkg/info/"
)

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

// path is where a file of Debian's packages lies.
func (s sources) path(name string) string { return filepath.Join(s.root, name) }

// addPackages adds the programs of packages, and what these programs need. Scripts are
// left out: nothing here says what they need.
func (t tree) addPackages(from sources, packages ...string) error {
	for _, name := range packages {
		files, err := os.ReadFile(from.path(packageLists + name + ".list"))
		if err != nil {
			return fmt.Errorf("listing the files of Debian's package %s, which must be there: %w", name, err)
		}
		for _, file := range strings.Fields(string(files)) {
			if err := t.addFile(from, file); err != nil {
				return fmt.Errorf("package %s: %w", name, err)
			}
		}
	}
	return nil
}

func (t tree) addFile(from sources, name string) error {
	if configuration.MatchString(name) {
		return t.copy(from, name)
	}
	folder, base := filepath.Base(filepath.Dir(name)), filepath.Base(name)
	if folder != "bin" && folder != "sbin" || base == heavy {
		return nil
	}
	info, err := os.Lstat(from.path(name))
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() { // The machine can be made without it.
		return nil
	}
	if err != nil {
		return err
	}
	program, err := elf.Open(from.path(name))
	if err != nil {
		return nil // It is a script.
	}
	defer program.Close()
	if info.Mode()&fs.ModeSymlink == 0 {
		return t.copyProgram(from, name)
	}
	to, err := os.Readlink(from.path(name))
	if err != nil {
		return err
	}
	t.link(name, to)
	return nil
}

// certified adds the certificates of the authorities that Debian trusts, without any that
// the machine trusts beside them.
func (t tree) certified(from sources) error {
	files, err := filepath.Glob(from.path("/usr/share/ca-certificates/mozilla/*.crt"))
	if err != nil || len(files) == 0 {
		return errors.New("there are no certificates of authorities: install Debian's package ca-certificates")
	}
	var all bytes.Buffer
	for _, file := range files {
		one, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		all.Write(one)
	}
	t.write(certificateFile, 0o644, all.Bytes())
	return nil
}

// copyProgram adds a program or library of Debian's packages, with all that it loads, so
// that it starts. It reads that from the file, which may be of another architecture.
func (t tree) copyProgram(from sources, name string) error {
	if _, known := t[place(name)]; known {
		return nil
	}
	if err := t.copy(from, name); err != nil {
		return err
	}
	program, err := elf.Open(from.path(name))
	if err != nil {
		return err
	}
	needed, err := program.ImportedLibraries()
	folders, _ := program.DynString(elf.DT_RUNPATH)
	err = errors.Join(err, program.Close())
	for _, library := range needed {
		file, missing := from.library(library, folders)
		if missing == nil {
			missing = t.copyProgram(from, file)
		}
		err = errors.Join(err, missing)
		// A loader's own path can be a link that leads out of the root.
		if loader, known := loaders[library]; known {
			t[place(loader)] = t[place(file)]
		}
	}
	return err
}

// loaders are the paths at which programs expect what loads their libraries: libc needs it, too.
var loaders = map[string]string{"ld-linux-x86-64.so.2": "/lib64/ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1": "/lib/ld-linux-aarch64.so.1"}

// triplets are the names of architectures in Debian's folders of libraries.
var triplets = map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}

// library returns the path of a library that programs load.
func (s sources) library(name string, folders []string) (string, error) {
	for _, folder := range append(folders, "/lib/"+triplets[s.arch], "/usr/lib/"+triplets[s.arch], "/lib", "/usr/lib") {
		if _, err := os.Stat(s.path(filepath.Join(folder, name))); err == nil {
			return filepath.Join(folder, name), nil
		}
	}
	return "", fmt.Errorf("looking for the library %s: %w", name, fs.ErrNotExist)
}
