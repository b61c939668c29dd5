package kubenode

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed templates
var templates embed.FS

// files are what is written, by the template.
var files = map[string]string{
	"containerd.toml": "containerd.toml",
	"kubelet.yaml":    "kubelet.yaml",
	"pods.conflist":   "cni/10-pods.conflist",
}

// writeConfiguration writes what containerd and the kubelet are told.
func writeConfiguration(_ context.Context, settings Settings) error {
	if err := os.MkdirAll(filepath.Join(dir, "cni"), 0o755); err != nil {
		return err
	}
	// Pods have nobody to ask for names.
	if err := os.WriteFile(filepath.Join(dir, "resolv.conf"), nil, 0o644); err != nil {
		return err
	}
	all, err := template.ParseFS(templates, "templates/*")
	if err != nil {
		return fmt.Errorf("reading the templates: %w", err)
	}
	for name, path := range files {
		if err := write(all.Lookup(name), filepath.Join(dir, path), settings); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}
	return nil
}

func write(text *template.Template, path string, settings Settings) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return text.Execute(file, settings)
}
