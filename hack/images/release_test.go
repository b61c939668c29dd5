package main

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
)

const called = "ghcr.io/stowage-dev/stowage-manager:v0.0.1"

// releaseOf writes an image for two architectures into a new folder, and returns all its files by their paths.
func releaseOf(t *testing.T) (files map[string]string, pinned string) {
	t.Helper()
	t.Setenv("CREATED", "2026-01-01T00:00:00Z")
	in := t.TempDir()
	for _, arch := range []string{"amd64", "arm64"} {
		built(t, arch, filepath.Join(in, arch, "programs", "manager"))
		debian := filepath.Join(in, arch, "root")
		put(t, debian+"/usr/share/ca-certificates/mozilla/a.crt", "a certificate\n")
		put(t, debian+"/var/lib/dpkg/info/ca-certificates.list", "/.\n/usr\n/usr/sbin/update-ca-certificates\n")
		put(t, debian+"/var/lib/dpkg/info/bash.list", "/.\n/bin/bash\n")
		put(t, debian+"/var/lib/dpkg/status", "Package: ca-certificates\nArchitecture: all\nVersion: 20250419\n\nPackage: bash\nVersion: 5\n")
	}
	pinned, err := release(t.Context(), in, in, called, []string{"amd64", "arm64"})
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	err = filepath.WalkDir(in, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, in+"/")] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, pinned
}

// built builds a program from a copy of its source, in a folder of its own, with the flags of `make images-oci`.
func built(t *testing.T, arch, to string) {
	t.Helper()
	source := t.TempDir()
	if err := os.CopyFS(source, os.DirFS("pause")); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(source, "go.mod"), "module example.com/pause\n\ngo 1.26\n")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w -buildid=", "-o", to, ".")
	build.Dir, build.Env = source, append(os.Environ(), "GOARCH="+arch, "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatal(string(output))
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAReleaseThatIsBuiltTwiceHasTheSameBytes(t *testing.T) {
	first, pinned := releaseOf(t)
	second, again := releaseOf(t)
	if pinned != again {
		t.Errorf("it is %s, and then %s", pinned, again)
	}
	for _, path := range slices.Sorted(maps.Keys(first)) {
		if first[path] != second[path] {
			t.Errorf("%s differs", path)
		}
	}
	if len(first) != len(second) {
		t.Errorf("there are %d files, and then %d", len(first), len(second))
	}
}

func TestAReleaseHasAnImageForEachArchitectureUnderOneDigest(t *testing.T) {
	files, pinned := releaseOf(t)
	folder := t.TempDir()
	for path, content := range files {
		if inside, found := strings.CutPrefix(path, "layouts/manager/"); found {
			put(t, filepath.Join(folder, inside), content)
		}
	}
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%v: %+v", err, manifest)
	}
	only := manifest.Manifests[0]
	if pinned != called+"@"+only.Digest.String() || only.Annotations["io.containerd.image.name"] != called {
		t.Errorf("it is %s, and says %+v", pinned, only)
	}
	inner, err := index.ImageIndex(only.Digest)
	if err != nil {
		t.Fatal(err)
	}
	all, err := inner.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for i, arch := range []string{"amd64", "arm64"} {
		image, err := inner.Image(all.Manifests[i].Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil || config.Architecture != arch || all.Manifests[i].Platform.Architecture != arch {
			t.Errorf("image %d is for %s: %v", i, config.Architecture, err)
		}
	}
}

func TestTheBillNamesWhatIsInTheImageAndIsValid(t *testing.T) {
	files, _ := releaseOf(t)
	for _, arch := range []string{"amd64", "arm64"} {
		document, err := json.Read(strings.NewReader(files["stowage-manager-"+arch+".spdx.json"]))
		if err != nil {
			t.Fatal(err)
		}
		if err := spdxlib.ValidateDocument(document); err != nil {
			t.Error(err)
		}
		names := map[string]bool{}
		for _, one := range document.Packages {
			names[one.PackageName] = true
			if one.PackageVersion == "" || len(one.PackageExternalReferences) != 1 {
				t.Errorf("it says %+v", one)
			}
		}
		want := []string{"oci/stowage-manager", "golang/stdlib", "golang/example.com/pause", "deb/debian/ca-certificates"}
		for _, name := range want {
			if !names[name] {
				t.Errorf("%s isn't in %v", name, names)
			}
		}
		if len(names) != len(want) {
			t.Errorf("it has %v, and bash isn't in the image", names)
		}
	}
}
