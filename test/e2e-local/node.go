package main

import (
	"errors"
	"os/exec"
	"path/filepath"

	"github.com/stowage-dev/stowage/hack/uml"
	"github.com/stowage-dev/stowage/test/guests"
)

// Tests is what the node does for this program.
type Tests struct{}

// Suite is tests of one package: their program, and a pattern of their names.
type Suite struct{ Program, Run string }

// Output is what the tests of a package printed.
type Output struct {
	Text   string
	Failed bool
}

// LoadModules loads what the guest's kernel has as modules: scsi_debug is a SCSI disk
// that can be taken from under a mount. What xfs and ext4 need else is in it.
func (Tests) LoadModules(_ guests.Nothing, _ *guests.Nothing) error {
	return uml.LoadModules("loop", "quota_v2", "sd_mod", "scsi_debug")
}

// Run runs tests.
func (Tests) Run(suite Suite, output *Output) error {
	command := exec.Command(filepath.Join(uml.MachineDir, suite.Program), "-test.v", "-test.run="+suite.Run)
	command.Dir = "/tmp"
	text, err := command.CombinedOutput()
	output.Text = string(text)
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		output.Failed = true
		return nil
	}
	return err
}
