package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// standIns are images for Kubernetes' own end-to-end tests, by the last word of the
// name by which these ask for them. They have the programs that tests of volumes run.
var standIns = map[string]func(sources, context.Context) (image, error){
	"agnhost":           sources.agnhost,
	"busybox":           sources.tools,
	"debian-base":       sources.tools,
	"glibc-dns-testing": sources.tools,
	"nginx":             sources.webServer,
	"nfs":               sources.nfsServer,
	"pause":             sources.pause,
}

// nfsFolder has the modules of nfs-ganesha, which it loads by their names.
const nfsFolder = "/usr/lib/*-linux-gnu/ganesha/libfsalvfs.so"

//go:embed nfs-server.sh
var nfsServerScript []byte

func writeStandIns(ctx context.Context, from sources, list, archive string) error {
	content, err := os.ReadFile(list)
	if err != nil {
		return fmt.Errorf("reading which images the tests ask for: %w", err)
	}
	all := map[name.Reference]v1.Image{}
	built := map[string]v1.Image{}
	for _, reference := range strings.Fields(string(content)) {
		tag, err := name.NewTag(reference)
		if err != nil {
			return fmt.Errorf("reading which images the tests ask for: %w", err)
		}
		which := path.Base(tag.RepositoryStr())
		maker, known := standIns[which]
		if !known {
			continue
		}
		if built[which] == nil {
			if built[which], err = makeOne(ctx, from, maker); err != nil {
				return fmt.Errorf("making %s: %w", reference, err)
			}
		}
		all[tag] = built[which]
	}
	if len(built) != len(standIns) {
		return fmt.Errorf("of %d images that there are stand-ins for the tests ask for %d: look at %s", len(standIns), len(built), list)
	}
	return whole(archive, func(part string) error { return tarball.MultiRefWriteToFile(part, all) })
}

// makeOne makes a stand-in. What it has of the tools is a layer that it shares with the
// others: nodes unpack that once.
func makeOne(ctx context.Context, from sources, maker func(sources, context.Context) (image, error)) (v1.Image, error) {
	made, err := maker(from, ctx)
	if err != nil {
		return nil, err
	}
	common, err := from.tools(ctx)
	if err != nil {
		return nil, err
	}
	if rest, above := made.files.without(common.files); above && len(rest) > 0 {
		return image{rest, made.config}.build(from.arch, common.files)
	}
	return made.build(from.arch)
}

// tools is busybox with the programs that tests want from GNU: dd with flags, stat,
// blockdev and the like. Its shell is bash: that of busybox prefers its own programs, and
// dash lacks words that the tests use.
func (s sources) tools(ctx context.Context) (image, error) {
	made, err := s.busybox(ctx)
	if err != nil {
		return image{}, err
	}
	made.files, err = s.shellTools(ctx, "coreutils", "findutils", "util-linux", "mount", "bash")
	made.files.link("/bin/sh", "bash")
	return made, err
}

// agnhost is the program that most pods of the tests run, with a shell beside it.
func (s sources) agnhost(ctx context.Context) (image, error) {
	made, err := s.tools(ctx)
	if err != nil {
		return image{}, err
	}
	made.config.Entrypoint, made.config.Cmd = []string{"/agnhost"}, []string{"pause"}
	return made, made.files.program(s, "agnhost", "/agnhost")
}

func (s sources) webServer(ctx context.Context) (image, error) {
	made, err := s.tools(ctx)
	if err != nil {
		return image{}, err
	}
	made.files.write("/usr/share/nginx/html/index.html", 0o644, []byte("hello\n"))
	made.config.Cmd = []string{"/bin/busybox", "httpd", "-f", "-p", "80", "-h", "/usr/share/nginx/html"}
	return made, nil
}

func (s sources) nfsServer(ctx context.Context) (image, error) {
	made, err := s.tools(ctx)
	if err != nil {
		return image{}, err
	}
	modules, err := filepath.Glob(nfsFolder)
	if err != nil || len(modules) == 0 {
		return image{}, fmt.Errorf("there is no %s: install Debian's package nfs-ganesha-vfs: %w", nfsFolder, err)
	}
	for _, module := range modules {
		if err := made.files.copyProgram(s, module); err != nil {
			return image{}, err
		}
	}
	if err := made.files.copy(s, "/etc/netconfig"); err != nil {
		return image{}, err
	}
	made.files.link("/etc/mtab", "/proc/self/mounts")
	made.files.write("/etc/passwd", 0o644, []byte(passwords+"_rpc:x:102:65534::/run/rpcbind:/sbin/nologin\n"))
	made.files.write("/etc/services", 0o644, []byte("sunrpc 111/tcp rpcbind\nsunrpc 111/udp rpcbind\n"))
	if err := made.files.addPackages(s, "nfs-ganesha", "rpcbind"); err != nil {
		return image{}, err
	}
	made.files.write("/usr/local/bin/run_nfs.sh", 0o755, nfsServerScript)
	made.config.Entrypoint, made.config.Cmd = []string{"/usr/local/bin/run_nfs.sh"}, nil
	return made, nil
}
