package kubenode

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/hack/uml"
)

const cpuInfo = "/proc/cpuinfo"

// tunables are what the kubelet wants of the kernel, and sets if it is otherwise.
var tunables = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

// prepare makes places to write to, and makes the host look as a kubelet expects.
func prepare(ctx context.Context, settings Settings) error {
	if err := checkPaths(settings); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if len(settings.Modules) > 0 {
		if err := uml.LoadModules(settings.Modules...); err != nil {
			return err
		}
	}
	if err := mountVar(ctx, settings.Disk); err != nil {
		return err
	}
	if err := prepareKernel(settings); err != nil {
		return err
	}
	if err := cover(dir, "/etc/hosts", hosts(settings.Hosts)); err != nil {
		return err
	}
	if err := showFolders(settings.Folders); err != nil {
		return err
	}
	// What containers mount on the host with Bidirectional propagation, it sees.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing mounts with containers: %w", err)
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
}

func prepareKernel(settings Settings) error {
	if err := prepareCgroups(settings.Cgroup); err != nil {
		return err
	}
	if settings.SharedKernel {
		return CoverKernel(dir)
	}
	return coverClockRate(dir)
}

// CoverKernel has a kubelet find the kernel as it wants it, in this mount namespace alone: the kubelet changes nothing of
// the machine's. What covers the kernel's files is in the folder.
func CoverKernel(folder string) error {
	for name, value := range tunables {
		if err := cover(folder, "/proc/sys/"+name, value+"\n"); err != nil {
			return err
		}
	}
	return coverClockRate(folder)
}

func coverClockRate(folder string) error {
	known, err := os.ReadFile(cpuInfo)
	if err != nil || bytes.Contains(known, []byte("cpu MHz")) {
		return err
	}
	// The kubelet doesn't start without a clock rate, which a guest's kernel leaves out.
	return cover(folder, cpuInfo, strings.TrimSpace(string(known))+"\ncpu MHz\t\t: 1000.000\n\n")
}

func showFolders(folders map[string]string) error {
	for path, folder := range folders {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(folder, path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("showing %s at %s: %w", folder, path, err)
		}
	}
	return nil
}

// cover has a file read as the content says, for this node alone. It can be written to
// without a trace.
func cover(folder, path, content string) error {
	file := filepath.Join(folder, strings.ReplaceAll(strings.Trim(path, "/"), "/", "-"))
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		return err
	}
	if err := unix.Mount(file, path, "", unix.MS_BIND, ""); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("covering %s: %w", path, err)
	}
	return nil
}

func hosts(all map[string]string) string {
	text := "127.0.0.1 localhost\n"
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text += all[name] + " " + name + "\n"
	}
	return text
}

// checkPaths finds what the node's own /var would hide.
func checkPaths(settings Settings) error {
	for _, path := range []string{settings.Kubelet, settings.Kubeconfig, settings.ClientAuthority, settings.Logs} {
		if strings.HasPrefix(path, "/var/") {
			return fmt.Errorf("%s is in /var, of which the node has one of its own: "+
				"run the test from another folder, with TMPDIR elsewhere", path)
		}
	}
	return nil
}

//go:embed templates
var templates embed.FS

var files = map[string]string{
	"containerd.toml": "containerd.toml",
	"kubelet.yaml":    "kubelet.yaml",
	"pods.conflist":   "cni/10-pods.conflist",
}

func writeConfiguration(_ context.Context, settings Settings) error {
	if err := os.MkdirAll(filepath.Join(dir, "cni"), 0o755); err != nil {
		return err
	}
	// There is no DNS server for pods.
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
