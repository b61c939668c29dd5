// Package guesttests runs the tests of packages in a guest, as the programs that
// `go test -c` makes of them: for what the kernel of the machine can't do, or what a
// test may break in a guest without harm. A test that is skipped there fails the run.
package guesttests

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/stowage-dev/stowage/test/apiserver"
	"github.com/stowage-dev/stowage/test/guests"
	"github.com/stowage-dev/stowage/test/story"
)

const (
	// suitePatience is how long the tests of one package may take.
	suitePatience = 15 * time.Minute
	// memory is what a guest has: disks of tests are in it.
	memory = "3G"
)

// Run is what tests are run, and how.
type Run struct {
	// Name is that of the program that this is. The programs of the tests are in the
	// folder bin/test/<name>, named after the last part of their package, with .test.
	Name string
	// MostTime is how long all of it may take.
	MostTime time.Duration
	// Suites are the packages, in the order in which their tests run.
	Suites []Suite
}

// Main runs them. It is all of a program's main.
func (r Run) Main() {
	guests.Run(guests.Test{Name: r.Name, MostTime: r.MostTime, Tell: r.tell, Services: func() ([]any, error) { return []any{Tests{}}, nil }})
}

// tell runs all tests on one node.
func (r Run) tell(ctx context.Context, folder guests.Folder) error {
	s := story.New(ctx)
	var node *guests.Node
	s.Do("a node with a kernel of its own starts", func() error {
		booted, err := guests.BootWith(ctx, folder, 1, memory)
		if err == nil {
			node = booted[0]
		}
		return err
	})
	s.Do("it has modules, a disk for tests to write to, and the sources", func() error {
		return node.Ask("Tests.Prepare", apiserver.Repository(), &guests.Nothing{})
	})
	var all report
	for _, suite := range r.Suites {
		s.Do("the tests of "+suite.Package+" hold", func() error {
			got, err := r.run(node, suite)
			all = all.and(got)
			return err
		})
	}
	fmt.Printf("\nIn the guest: %s.\n", all)
	return s.End()
}

// run has the node run tests of one package.
func (r Run) run(node *guests.Node, suite Suite) (report, error) {
	suite.Program = filepath.Join(apiserver.Repository(), "bin", "test", r.Name, path.Base(suite.Package)+".test")
	suite.Package = filepath.Join(apiserver.Repository(), suite.Package)
	var output Output
	if err := node.AskWithin(suitePatience, "Tests.Run", suite, &output); err != nil {
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
