// Command e2e-local is `make e2e-local`: the tests of local volumes and disks for which
// a kernel must do what that of the machine may not: keep project quotas, let root grow
// a mounted ext4, and lose a disk that is mounted. They run in a User Mode Linux guest, as the programs that `go test`
// makes of them. A test that is skipped there fails, unless it is known why.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stowage-dev/stowage/test/guests"
	"github.com/stowage-dev/stowage/test/story"
)

const (
	// mostTime is how long all of it may take.
	mostTime = 5 * time.Minute
	// memory is what a guest has: disks of tests are in it.
	memory = "3G"
	// testsDir has the programs, as the Makefile builds them.
	testsDir = "bin/test/e2e-local"
)

// suites are the tests that run: what the machine's kernel can do is proved there, in
// a fraction of the time.
var suites = []Suite{
	{Program: "quota.test", Run: "."},
	{Program: "device.test", Run: "."},
	{Program: "localvolume.test", Run: "Quota"},
	{Program: "csi.test", Run: "Gr[eo]w|Scsi"},
	{Program: "emptydir.test", Run: "Quota"},
}

func main() {
	guests.Run(guests.Test{Name: "e2e-local", MostTime: mostTime, Tell: tell, Services: services})
}

// services are what the node can be asked.
func services() ([]any, error) { return []any{Tests{}}, nil }

// tell runs all tests on one node.
func tell(ctx context.Context, folder guests.Folder) error {
	s := story.New(ctx)
	var node *guests.Node
	s.Do("a node with a kernel of its own starts", func() error {
		booted, err := guests.BootWith(ctx, folder, 1, memory)
		if err == nil {
			node = booted[0]
		}
		return err
	})
	s.Do("it loads what loop devices, quotas and SCSI disks need", func() error {
		return node.Ask("Tests.LoadModules", guests.Nothing{}, &guests.Nothing{})
	})
	var all report
	for _, suite := range suites {
		s.Do("the tests in "+suite.Program+" hold", func() error {
			got, err := run(node, suite)
			all = all.and(got)
			return err
		})
	}
	fmt.Printf("\nIn the guest: %s.\n", all)
	return s.End()
}

// run has the node run tests of one package.
func run(node *guests.Node, suite Suite) (report, error) {
	path, err := filepath.Abs(filepath.Join(testsDir, suite.Program))
	if err != nil {
		return report{}, err
	}
	suite.Program = path
	var output Output
	if err := node.Ask("Tests.Run", suite, &output); err != nil {
		return report{}, err
	}
	got := read(output.Text)
	if problem := got.problem(output.Failed); problem != nil {
		fmt.Fprintln(os.Stderr, output.Text)
		return got, problem
	}
	fmt.Printf("      %s\n", got)
	return got, nil
}
