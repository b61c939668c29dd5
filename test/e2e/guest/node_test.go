package guest_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/hack/uml"
	"github.com/stowage-dev/stowage/test/harness/guest"
)

const (
	// diskDir is where the guest has a disk: its /tmp is memory.
	diskDir = "/run/disk"
	// diskBytes is its size.
	diskBytes = 1 << 30
)

// Tests runs tests on the node.
type Tests struct{}

// Package is a package with tests: its folder in the repository, the program that its
// tests are, and patterns of the names of those that run, and of those that don't.
type Package struct {
	Path, Program, Run, Skip string
	// Memory is how many bytes of it the tests may take; 0: all that there is.
	Memory int64
}

// Output is what the tests of a package printed.
type Output struct {
	Text   string
	Failed bool
}

// Prepare loads what the guest's kernel has as modules (scsi_debug is a SCSI disk that
// can be taken from under a mount; with max_part, minor numbers of loop devices aren't those
// in their names), makes a disk for tests, what shells look for where
// there is no udev, and shows the folder of the sources where it was compiled.
func (Tests) Prepare(sources string, _ *guest.Nothing) error {
	if err := uml.LoadModules("loop max_part=7", "quota_v2", "sd_mod", "scsi_debug"); err != nil {
		return err
	}
	if err := os.Symlink("/proc/self/fd", "/dev/fd"); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return errors.Join(makeDisk(), showMachine(sources))
}

// makeDisk mounts a disk that is a file in memory.
func makeDisk() error {
	image := diskDir + ".img"
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(image, diskBytes); err != nil {
		return err
	}
	if err := os.Mkdir(diskDir, 0o755); err != nil {
		return err
	}
	for _, command := range []*exec.Cmd{exec.Command("mkfs.ext4", "-q", image), exec.Command("mount", "-o", "loop", image, diskDir)} {
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, output)
		}
	}
	return nil
}

// showMachine shows a folder of the machine's by its own path, which the guest's own
// /tmp or /run may hide.
func showMachine(folder string) error {
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return unix.Mount(filepath.Join(uml.MachineDir, folder), folder, "", unix.MS_BIND, "")
}

// Run runs tests.
func (Tests) Run(tested Package, output *Output) error {
	command := exec.Command(tested.Program, "-test.v", "-test.timeout=0", "-test.run="+tested.Run, "-test.skip="+tested.Skip)
	command.Dir, command.Env = tested.Path, append(os.Environ(), "TMPDIR="+diskDir)
	group, err := guest.Confine(filepath.Base(tested.Path), tested.Memory)
	if err != nil {
		return err
	}
	if group != "" {
		folder, err := os.Open(group)
		if err != nil {
			return err
		}
		defer folder.Close()
		command.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(folder.Fd())}
	}
	text, err := command.CombinedOutput()
	output.Text = string(text)
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		output.Failed = true
		return nil
	}
	return err
}
