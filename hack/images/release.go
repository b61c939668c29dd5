package main

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/spdx/tools-golang/json"
)

// released are the images of a release.
var released = []string{"manager", "node-agent", "gce-mock"}

// release writes an image for several architectures as a folder with OCI's layout, and an SBOM
// for each. It returns the image's name, with the digest that it has in every registry. In the
// folder in each architecture has a folder, with programs and with the root of Debian's packages.
func release(ctx context.Context, in, out, called string, architectures []string) (string, error) {
	tag, err := name.NewTag(called)
	if err != nil {
		return "", err
	}
	which := strings.TrimPrefix(path.Base(tag.RepositoryStr()), "stowage-")
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range architectures {
		from := sources{filepath.Join(in, arch, "programs"), "Dockerfile", filepath.Join(in, arch, "root"), arch}
		built, err := writeBill(ctx, from, filepath.Join(out, "stowage-"+which+"-"+arch+".spdx.json"), which, tag)
		if err != nil {
			return "", err
		}
		platform := v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: built, Descriptor: platform})
	}
	written, err := layout.Write(filepath.Join(in, "layouts", which), empty.Index)
	if err != nil {
		return "", err
	}
	err = written.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": tag.TagStr(), "io.containerd.image.name": tag.String(),
	}))
	digest, failed := index.Digest()
	return tag.String() + "@" + digest.String(), errors.Join(err, failed)
}

// writeBill builds an image, and writes the SBOM of all that is in it.
func writeBill(ctx context.Context, from sources, file, which string, tag name.Tag) (v1.Image, error) {
	made, err := makers[which](from, ctx)
	if err != nil {
		return nil, err
	}
	built, err := made.build(from.arch)
	if err != nil {
		return nil, err
	}
	built = mutate.ConfigMediaType(mutate.MediaType(built, types.OCIManifestSchema1), types.OCIConfigJSON)
	bill, err := made.files.bill(from, tag, built)
	if err != nil {
		return nil, err
	}
	bills, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	return built, errors.Join(json.Write(bill, bills), bills.Close())
}
