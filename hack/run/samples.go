package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stowage-dev/stowage/test/apiserver"
	"github.com/stowage-dev/stowage/test/cluster"
)

const (
	// sampleBase is the folder that config/samples names, which this cluster has
	// elsewhere.
	sampleBase = "/var/lib/stowage"
	// sampleClass is the StorageClass that local_backend.yaml asks for.
	sampleClass = "local"
)

// applySampleBackend writes config/samples with this cluster's paths to its own
// folder, and applies the local backend from there.
func applySampleBackend(ctx context.Context, c *cluster.Cluster) error {
	if err := writeSamples(samplesDir(c), c.Folder.Disks()); err != nil {
		return err
	}
	kubectl, err := c.Kubectl(ctx, "apply", "--server-side", "-f", filepath.Join(samplesDir(c), "local_backend.yaml"))
	if err != nil {
		return err
	}
	if output, err := kubectl.CombinedOutput(); err != nil {
		return fmt.Errorf("applying the sample backend: %w:\n%s", err, output)
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
