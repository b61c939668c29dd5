package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/cluster"
)

const (
	// sampleBase is the folder that config/samples names, which this cluster has
	// elsewhere.
	sampleBase    = "/var/lib/stowage"
	sampleClasses = "local and cloud"
)

//go:embed manifests
var cloudSamples embed.FS

func applySampleBackends(ctx context.Context, c *cluster.Cluster) error {
	fill := strings.NewReplacer(sampleBase, c.Folder.Disks(), "{{endpoint}}", c.CloudEndpoint,
		"{{project}}", cluster.CloudProject, "{{zone}}", cluster.CloudZone, "{{node}}", cluster.NodeName)
	for _, from := range []struct {
		files   fs.FS
		pattern string
	}{
		{os.DirFS(filepath.Join(apiserver.Repository(), "config", "samples")), "*_*.yaml"},
		{cloudSamples, "manifests/*"},
	} {
		if err := writeSamples(samplesDir(c), from.files, from.pattern, fill); err != nil {
			return fmt.Errorf("writing samples: %w", err)
		}
	}
	return c.Run(ctx, "apply", "--server-side",
		"-f", filepath.Join(samplesDir(c), "local_backend.yaml"), "-f", filepath.Join(samplesDir(c), "cloud_backend.yaml"))
}

func samplesDir(c *cluster.Cluster) string {
	return filepath.Join(c.Folder.Root(), "samples")
}

func writeSamples(dir string, from fs.FS, pattern string, fill *strings.Replacer) error {
	sources, err := fs.Glob(from, pattern)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, source := range sources {
		content, err := fs.ReadFile(from, source)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, path.Base(source)), []byte(fill.Replace(string(content))), 0o644); err != nil {
			return err
		}
	}
	return nil
}
