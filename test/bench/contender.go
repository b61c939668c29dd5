package main

import (
	"fmt"
	"os"
	"strings"
)

const (
	managerName = "manager"
	bareName    = "bare"
	otherName   = "other"

	noClientLimit = -1
)

// contender is a program that binds claims.
type contender struct {
	name    string
	command []string
}

// contenders are the program to measure, the manager or the one that --vs names,
// and the bare client.
func contenders(dir, kubeconfig string, o options) (subject, bare contender, err error) {
	self, err := os.Executable()
	if err != nil {
		return contender{}, contender{}, fmt.Errorf("finding this program: %w", err)
	}
	bare = contender{name: bareName, command: []string{self, bareArgument, kubeconfig}}
	if o.vs != "" {
		line := strings.ReplaceAll(o.vs, "{{kubeconfig}}", kubeconfig)
		return contender{name: otherName, command: []string{"sh", "-c", "exec " + line}}, bare, nil
	}
	if _, err := os.Stat(o.manager); err != nil {
		return contender{}, contender{}, fmt.Errorf("finding the manager (make build makes it): %w", err)
	}
	return contender{name: managerName, command: []string{
		o.manager, "--kubeconfig=" + kubeconfig, "--scope=cluster", "--leader-elect=false",
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--local-base=" + dir,
	}}, bare, nil
}

// with is the contender with further arguments; of a flag the last one holds.
func (c contender) with(arguments ...string) contender {
	c.command = append(append([]string(nil), c.command...), arguments...)
	return c
}
