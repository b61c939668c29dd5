package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

type entry struct {
	mode    fs.FileMode
	content []byte
	link    string
}

type tree map[string]entry

var merged = []string{"bin", "lib", "lib64", "sbin"}

// place is where a file lies once the links that merge folders were followed.
func place(name string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path.Clean(name), "/"), "/")
	if slices.Contains(merged, first) {
		return "/usr" + path.Clean(name)
	}
	return path.Clean(name)
}

func (t tree) write(name string, mode fs.FileMode, content []byte) {
	t[place(name)] = entry{mode: mode, content: content}
}

func (t tree) link(name, to string) {
	t[place(name)] = entry{mode: fs.ModeSymlink | 0o777, link: to}
}

func (t tree) folder(name string, mode fs.FileMode) {
	t[place(name)] = entry{mode: fs.ModeDir | mode}
}

// copy adds a file of Debian's packages, at its own path, as root's and without setuid.
func (t tree) copy(from sources, name string) error {
	content, err := os.ReadFile(from.path(name))
	if err != nil {
		return err
	}
	info, err := os.Stat(from.path(name))
	if err != nil {
		return err
	}
	t.write(name, info.Mode().Perm()|0o444, content)
	return nil
}

func (t tree) mergeFolders() {
	for _, name := range merged {
		t["/"+name] = entry{mode: fs.ModeSymlink | 0o777, link: "usr/" + name}
		t["/usr/"+name] = entry{mode: fs.ModeDir | 0o755}
	}
}

// without is what the tree has beside another, and whether it has all of that one.
func (t tree) without(other tree) (rest tree, all bool) {
	rest = maps.Clone(t)
	for name, file := range other {
		own, known := t[name]
		if !known || own.mode != file.mode || own.link != file.link || !bytes.Equal(own.content, file.content) {
			return nil, false
		}
		delete(rest, name)
	}
	return rest, true
}

// layer is the tree as a layer of an image. The same tree has the same bytes: it is
// sorted, and nothing in it has a time.
func (t tree) layer() (v1.Layer, error) {
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	whole := t.withParents()
	for _, name := range slices.Sorted(maps.Keys(whole)) {
		if err := whole[name].write(writer, name); err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}

func (t tree) withParents() tree {
	whole := maps.Clone(t)
	for name := range t {
		for parent := path.Dir(name); parent != "/"; parent = path.Dir(parent) {
			if _, known := whole[parent]; !known {
				whole.folder(parent, 0o755)
			}
		}
	}
	return whole
}

func (e entry) write(archive *tar.Writer, name string) error {
	header := &tar.Header{
		Name: strings.TrimPrefix(name, "/"), Typeflag: tar.TypeReg, Format: tar.FormatPAX,
		Mode: int64(e.mode.Perm()), Size: int64(len(e.content)),
	}
	switch {
	case e.mode.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
	case e.link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, e.link
	}
	if e.mode&fs.ModeSticky != 0 {
		header.Mode |= 0o1000
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := archive.Write(e.content)
	return err
}
