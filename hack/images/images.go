package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

const (
	certificateFile = "/etc/ssl/certs/ca-certificates.crt"
	searchPath      = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	nonRoot         = "65532:65532"
	busybox         = "/bin/busybox"

	passwords = "root:x:0:0:root:/root:/sbin/nologin\n" +
		"nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n" +
		"nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"
	groups = "root:x:0:\nnogroup:x:65534:\nnonroot:x:65532:\n"
)

// sources are what images are made of, for one architecture.
type sources struct {
	programs   string
	dockerfile string
	// root is the folder with Debian's packages: / for those that are installed here.
	root, arch string
}

type image struct {
	files  tree
	config v1.Config
}

// makers are the images by name. The first three are the Dockerfile's targets; pods of
// testbeds are made of the others.
var makers = map[string]func(sources, context.Context) (image, error){
	"manager":    func(s sources, _ context.Context) (image, error) { return s.unprivileged("manager") },
	"gce-mock":   func(s sources, _ context.Context) (image, error) { return s.unprivileged("gce-mock") },
	"node-agent": sources.nodeAgent,
	"busybox":    sources.busybox,
	"pause":      sources.pause,
}

func (s sources) unprivileged(name string) (image, error) {
	files := userFiles()
	err := files.certified(s)
	if err == nil {
		err = files.program(s, name, "/"+name)
	}
	return image{files, v1.Config{
		User: nonRoot, Entrypoint: []string{"/" + name}, Env: []string{searchPath, "SSL_CERT_FILE=" + certificateFile}, WorkingDir: "/",
	}}, err
}

func (s sources) nodeAgent(context.Context) (image, error) {
	const program = "/usr/local/bin/node-agent"
	files := userFiles()
	files.mergeFolders()
	dockerfile, err := os.ReadFile(s.dockerfile)
	if err != nil {
		return image{}, err
	}
	packages, err := packagesOf(string(dockerfile))
	if err != nil {
		return image{}, err
	}
	if err := files.addPackages(s, append(packages, shell...)...); err != nil {
		return image{}, err
	}
	if err := files.certified(s); err != nil {
		return image{}, err
	}
	files.link("/bin/sh", "dash")
	if err := files.program(s, "stowage-mount", filepath.Dir(program)+"/stowage-mount"); err != nil {
		return image{}, err
	}
	return image{files, v1.Config{Entrypoint: []string{program}, Env: []string{searchPath}, WorkingDir: "/"}}, files.program(s, "node-agent", program)
}

func (s sources) busybox(ctx context.Context) (image, error) {
	files, err := s.shellTools(ctx)
	return image{files, v1.Config{Cmd: []string{"sh"}, Env: []string{searchPath}, WorkingDir: "/"}}, err
}

// shellTools is busybox, as each of its programs that none of the packages has.
func (s sources) shellTools(ctx context.Context, packages ...string) (tree, error) {
	files := userFiles()
	files.mergeFolders()
	if err := errors.Join(files.copy(s, busybox), files.addPackages(s, packages...)); err != nil {
		return nil, err
	}
	applets, err := exec.CommandContext(ctx, busybox, "--list").Output()
	for _, applet := range strings.Fields(string(applets)) {
		_, inBin := files[place("/bin/"+applet)]
		if _, inSbin := files[place("/sbin/"+applet)]; !inBin && !inSbin {
			files.link("/bin/"+applet, "busybox")
		}
	}
	return files, err
}

func (s sources) pause(context.Context) (image, error) {
	files := tree{}
	return image{files, v1.Config{User: "65535:65535", Entrypoint: []string{"/pause"}, WorkingDir: "/"}}, files.program(s, "pause", "/pause")
}

func (t tree) program(from sources, name, path string) error {
	content, err := os.ReadFile(filepath.Join(from.programs, name))
	t.write(path, 0o755, content)
	return err
}

func userFiles() tree {
	files := tree{}
	files.write("/etc/passwd", 0o644, []byte(passwords))
	files.write("/etc/group", 0o644, []byte(groups))
	files.write("/etc/nsswitch.conf", 0o644, []byte("passwd: files\ngroup: files\nhosts: files dns\n"))
	files.folder("/home/nonroot", 0o755)
	files.folder("/tmp", fs.ModeSticky|0o777)
	return files
}

func (i image) build(arch string, below ...tree) (v1.Image, error) {
	built := empty.Image
	for _, files := range append(below, i.files) {
		layer, err := files.layer()
		if err != nil {
			return nil, err
		}
		if built, err = mutate.AppendLayers(built, layer); err != nil {
			return nil, err
		}
	}
	file, err := built.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Architecture, file.OS, file.Config = arch, "linux", i.config
	return mutate.ConfigFile(built, file)
}
