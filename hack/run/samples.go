package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/cluster"
)

const (
	// sampleBase is the folder that config/samples names, which this cluster has
	// elsewhere.
	sampleBase = "/var/lib/stowage"
	// sampleClasses are the StorageClasses that the backends ask for which are applied.
	sampleClasses = "local and cloud"
)

// cloudSamples are those that only this cluster's own cloud serves.
//
//go:embed manifests
var cloudSamples embed.FS

// applySampleBackends writes config/samples with this cluster's paths to its own
// folder, with samples for its cloud, and applies two backends from there.
func applySampleBackends(ctx context.Context, c *cluster.Cluster) error {
	if err := writeSamples(samplesDir(c), c.Folder.Disks()); err != nil {
		return err
	}
	if err := writeCloudSamples(samplesDir(c), c.CloudEndpoint); err != nil {
		return err
	}
	kubectl, err := c.Kubectl(ctx, "apply", "--server-side",
		"-f", filepath.Join(samplesDir(c), "local_backend.yaml"), "-f", filepath.Join(samplesDir(c), "cloud_backend.yaml"))
	if err != nil {
		return err
	}
	if output, err := kubectl.CombinedOutput(); err != nil {
		return fmt.Errorf("applying the sample backends: %w:\n%s", err, output)
	}
	return nil
}

func samplesDir(c *cluster.Cluster) string {
	return filepath.Join(c.Folder.Root(), "samples")
}

func writeSamples(dir, base string) error {
	sources, err := filepath.Glob(filepath.Join(apiserver.Repository(), "config", "samples", "*_*.yaml"))
	if err != nil {
		return fmt.Errorf("finding the samples: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder of the samples: %w", err)
	}
	for _, source := range sources {
		content, err := os.ReadFile(source)
		if err != nil {
			return fmt.Errorf("reading a sample: %w", err)
		}
		content = bytes.ReplaceAll(content, []byte(sampleBase), []byte(base))
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(source)), content, 0o644); err != nil {
			return fmt.Errorf("writing a sample: %w", err)
		}
	}
	return nil
}

func writeCloudSamples(dir, endpoint string) error {
	fill := strings.NewReplacer("{{endpoint}}", endpoint,
		"{{project}}", cluster.CloudProject, "{{zone}}", cluster.CloudZone, "{{node}}", cluster.NodeName)
	return fs.WalkDir(cloudSamples, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := cloudSamples.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading a sample: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, entry.Name()), []byte(fill.Replace(string(content))), 0o644); err != nil {
			return fmt.Errorf("writing a sample: %w", err)
		}
		return nil
	})
}
