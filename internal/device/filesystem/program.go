package filesystem

import (
	"context"
	"fmt"
	"strings"

	utilexec "k8s.io/utils/exec"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/message"
)

// maxOutput is how much a program's output adds to an error: the end, where
// programs say what went wrong.
const maxOutput = 600

// packageOf is the Debian package that brings a program.
var packageOf = map[string]string{
	"blkid":      "util-linux",
	"prlimit":    "util-linux",
	"mkfs.ext4":  "e2fsprogs",
	"fsck.ext4":  "e2fsprogs",
	"resize2fs":  "e2fsprogs",
	"mkfs.xfs":   "xfsprogs",
	"xfs_growfs": "xfsprogs",
}

// programs runs other programs until they end, or the context does: then they are
// killed. It is what k8s.io/mount-utils runs programs with, which knows no context.
type programs struct {
	utilexec.Interface
	ctx context.Context
}

// Command implements utilexec.Interface.
func (p programs) Command(name string, arguments ...string) utilexec.Cmd {
	return program{Cmd: p.CommandContext(p.ctx, name, arguments...)}
}

// check reports a program that isn't installed.
func (p programs) check(names ...string) error {
	for _, name := range names {
		if _, err := p.LookPath(name); err != nil {
			return fmt.Errorf("%w: %s isn't installed on this node (Debian's package %s has it)", device.ErrNoTool, name, packageOf[name])
		}
	}
	return nil
}

// program is one that is run.
type program struct{ utilexec.Cmd }

// CombinedOutput implements utilexec.Cmd, for outputs of any length.
func (p program) CombinedOutput() ([]byte, error) {
	output, err := p.Cmd.CombinedOutput()
	return []byte(message.End(strings.TrimSpace(string(output)), maxOutput)), err
}
