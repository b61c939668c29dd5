package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

// Users of the cluster, each with a kubeconfig of that name.
const (
	AdminUser   = "admin"
	ManagerUser = "manager"
	AgentUser   = "node-agent"
)

type user struct {
	file, name string
	groups     []string
}

func nodeUser(file, node string) user {
	return user{file, "system:node:" + node, []string{"system:nodes"}}
}

// writeKubeconfigs makes a certificate for each user, with the user's name in a cluster:
// config/rbac is what bounds them.
func (c *Cluster) writeKubeconfigs() error {
	users := []user{
		{AdminUser, "admin", []string{"system:masters"}},
		{
			ManagerUser, "system:serviceaccount:" + Namespace + ":stowage-manager",
			[]string{"system:serviceaccounts", "system:serviceaccounts:" + Namespace},
		},
		nodeUser(AgentUser, NodeName),
		nodeUser(secondAgent, SecondNode),
	}
	for _, node := range c.nodes {
		users = append(users, nodeUser(node, node))
	}
	for _, user := range users {
		content, err := c.server.Kubeconfig(user.name, user.groups...)
		if err != nil {
			return err
		}
		if err := c.Folder.write(filepath.Join("kubeconfigs", user.file), content); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) startManager(ctx context.Context) (err error) {
	flags := append([]string{"--scope=cluster", "--leader-election-namespace=" + Namespace}, c.managerFlags...)
	if c.Manager, err = c.newProgram("manager", ManagerUser, flags...); err != nil {
		return err
	}
	return c.Manager.StartReady(ctx)
}

func (c *Cluster) startAgent(ctx context.Context) (err error) {
	if c.Agent, err = c.newAgent(AgentUser, NodeName); err != nil {
		return err
	}
	return c.Agent.StartReady(ctx)
}

func (c *Cluster) newAgent(name, node string) (*Program, error) {
	return c.newProgram("node-agent", name,
		"--node-name="+node, "--follow-pods", "--root-dir="+c.Folder.AgentRoot(node), "--device-dir="+c.Folder.Devices(node))
}

// Upgrade replaces objects and the manager of another Repository by this one's. Agents that run
// elsewhere are the caller's.
func (c *Cluster) Upgrade(ctx context.Context) error {
	c.repository = apiserver.Repository()
	if err := errors.Join(c.Manager.Stop(), c.applyConfig(ctx)); err != nil {
		return err
	}
	return c.startManager(ctx)
}

// newProgram is a program that is one of the users. Of two of the same program, that of
// the second node has a name of its own.
func (c *Cluster) newProgram(program, user string, arguments ...string) (*Program, error) {
	name := program
	if user == secondAgent {
		name = user
	}
	log, err := c.Folder.createLog(name)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	probe, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	metrics, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	return NewProgram(ProgramOptions{
		Name: name, Path: builtPath(c.repository, program), LogFile: log.Name(), Probe: probe, Metrics: metrics,
		Arguments: append([]string{
			"--kubeconfig=" + c.Folder.Kubeconfig(user),
			"--local-base=" + c.Folder.Disks(),
			"--log-format=console",
		}, arguments...),
	}), nil
}

// ProgramPath is where `make build` puts one of Stowage's programs.
func ProgramPath(name string) (string, error) { return programIn(apiserver.Repository(), name) }

// ProgramPath is where one of Stowage's programs is in the cluster's repository.
func (c *Cluster) ProgramPath(name string) (string, error) { return programIn(c.repository, name) }

func programIn(repository, name string) (string, error) {
	path := builtPath(repository, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("finding %s (make build makes it): %w", name, err)
	}
	return path, nil
}

func builtPath(repository, name string) string { return filepath.Join(repository, "bin", name) }
