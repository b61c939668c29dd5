package cluster

import (
	"context"
	"fmt"
)

// SecondNode is the name of a node that can be added to the one, for volumes that move.
const SecondNode = "stowage-second"

// secondAgent is the name of its agent, and of the agent's kubeconfig.
const secondAgent = "node-agent-second"

// StartSecond adds a node to the cluster, another instance of the cloud, with an agent
// of its own on this machine: it shares the kernel with the first, and nothing else.
func (c *Cluster) StartSecond(ctx context.Context) error {
	if err := c.registerNode(ctx, SecondNode); err != nil {
		return fmt.Errorf("registering node %s: %w", SecondNode, err)
	}
	agent, err := c.newAgent(secondAgent, SecondNode)
	if err != nil {
		return err
	}
	c.Second = agent
	return agent.StartReady(ctx)
}
