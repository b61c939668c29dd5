package nfs_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

const (
	nodes = 2
	// silentAddress is one that no machine has.
	silentAddress = "10.99.0.9"
	goodPort      = 2049
	otherPort     = 2050
	// nodeMemory is more than an agent's container may take.
	nodeMemory = "768M"

	// soon is what a mount takes while all is well, on a machine that is busy. It is less
	// than the 30 s for which an agent waits for a server that hangs.
	soon = 25 * time.Second
)

// testbed is what all specs share. Stowage is nil until its first spec begins.
type testbed struct {
	folder      guest.Folder
	good, other *server
	nodes       [nodes + 1]*guest.Node
	stowage     *guest.Stowage
	// written is what files of volumes on the good server are to say, by the names of the
	// volumes, and retained are the claims whose directories are to stay.
	written  map[string]string
	retained []string
}

// server is an NFS server with a backend's volumes.
type server struct{ *guest.NFSServer }

// boot starts servers and nodes.
func (s *spec) boot() error {
	if err := guest.PrepareNFS(s.ctx); err != nil {
		return err
	}
	for port, at := range map[int]**server{goodPort: &s.good, otherPort: &s.other} {
		made, err := guest.NewNFSServer(port, s.folder)
		if err != nil {
			return err
		}
		*at = &server{made}
		if err := made.Start(s.ctx); err != nil {
			return err
		}
	}
	booted, err := guest.Boot(s.ctx, s.folder, nodes, guest.Hardware{Memory: nodeMemory})
	copy(s.nodes[1:], booted)
	return err
}

// dump prints what explains a failure.
func (b *testbed) dump(ctx context.Context) {
	guest.Dump(ctx, GinkgoWriter, b.folder, b.stowage, b.nodes[1:]...)
}

// progress waits until the process of a node has stored more.
func (s *spec) progress(node *guest.Node) error {
	var before int64
	if err := node.Call(s.ctx, "Load.Stored", guest.Nothing{}, &before); err != nil {
		return err
	}
	return scenario.Eventually(s.ctx, func() error {
		var now int64
		if err := node.Call(s.ctx, "Load.Stored", guest.Nothing{}, &now); err != nil {
			return err
		}
		if now < before+3 {
			return fmt.Errorf("%d lines are stored, after %d before", now, before)
		}
		return nil
	})
}

// stopLoad ends the process of a node, and reports whether a file on the server has all
// that it stored.
func (s *spec) stopLoad(node *guest.Node, file string) error {
	var stored int64
	if err := node.Call(s.ctx, "Load.Stop", guest.Nothing{}, &stored); err != nil {
		return err
	}
	return checkLines(file, stored)
}

func nameOf(n int) string { return "lines-" + strconv.Itoa(n) }

// quickly reports whether work takes no longer than it does while all is well.
func quickly(work func() error) error {
	started := time.Now()
	err := work()
	if took := time.Since(started); err == nil && took > soon {
		err = fmt.Errorf("it takes %s, more than %s", took.Round(time.Second/10), soon)
	}
	return err
}

// checkLines reports whether a file has the lines from 1 to last.
func checkLines(path string, last int64) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := strings.Fields(string(content))
	if int64(len(lines)) != last {
		return fmt.Errorf("%d lines are stored, and the server has %d", last, len(lines))
	}
	for i, line := range lines {
		if line != strconv.Itoa(i+1) {
			return fmt.Errorf("line %d is %q", i+1, line)
		}
	}
	return nil
}
