// Package gcedriver_test is `make test-gce-mock`: Google's own CSI driver for Compute
// Engine, as its module has it, with gce-mock as its cloud. csi-sanity's controller specs
// run against it once for each kind of disk. What the driver gets from gce-mock is what
// its authors expect of Google: a spec that fails here shows where gce-mock differs.
//
// Stowage is then in the place of the driver's sidecars: the contract of backends holds, and no
// failure of driver or cloud leaks a disk or makes two.
//
// Specs that fail because of the driver itself are in known_test.go. They run, too: one
// that passes is taken off the list.
package gcedriver_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stowage-dev/stowage/test/harness/owned"
)

const (
	// programsVariable names the folder with gce-mock and the driver.
	programsVariable = "STOWAGE_TEST_GCE_DRIVER"
	// planVariable names the plan of a process that runs csi-sanity once, as Ginkgo can.
	planVariable = "STOWAGE_TEST_GCE_DRIVER_PLAN"
)

func TestMain(m *testing.M) {
	if plan := os.Getenv(planVariable); plan != "" {
		os.Exit(runPlan(plan))
	}
	os.Exit(run(m))
}

// run runs the tests with one temporary folder for all of their clusters: the first that ends would
// remove those of the others.
func run(m *testing.M) int {
	remove, err := owned.Temporary("gcedriver")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	status := m.Run()
	if err := remove(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

func TestTheDriverPassesWith(t *testing.T) {
	for _, one := range subjects {
		t.Run(one.Name, func(t *testing.T) {
			t.Parallel()
			b := newTestbed(t, one.Name, one)
			got := b.runSanity()
			t.Logf("%s: %s; logs are in %s", one.Name, got, b.logs)
			for _, problem := range got.problems() {
				t.Error(problem)
			}
			b.leavesNothing()
		})
	}
}
