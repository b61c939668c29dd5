package gce

import (
	"context"
	"fmt"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
)

// machineOfStatus maps the statuses of instances. A resumed instance continues where it was
// suspended and writes what it held in memory; an instance under repair starts again by itself.
// So neither counts as stopped.
var machineOfStatus = map[string]backend.Machine{
	"PENDING": backend.MachineRuns, "PROVISIONING": backend.MachineRuns, "STAGING": backend.MachineRuns, "RUNNING": backend.MachineRuns,
	"PENDING_STOP": backend.MachineRuns, "STOPPING": backend.MachineRuns, "DEPROVISIONING": backend.MachineRuns,
	"SUSPENDING": backend.MachineRuns, "SUSPENDED": backend.MachineRuns, "REPAIRING": backend.MachineRuns,
	"STOPPED": backend.MachineStopped, "TERMINATED": backend.MachineStopped,
}

// Attachments returns the instances that have this backend's disks.
func (b *gceBackend) Attachments(ctx context.Context) ([]backend.Attached, error) {
	return inCloud(ctx, b, "listing attached disks", func(c *cloud.Client) ([]backend.Attached, error) { return b.attachments(ctx, c) })
}

// ObserveNode returns the state of the node's instance.
func (b *gceBackend) ObserveNode(ctx context.Context, node backend.NodeIdentity) (backend.Machine, error) {
	return inCloud(ctx, b, "looking for the instance of node "+node.Name, func(c *cloud.Client) (backend.Machine, error) {
		return observe(ctx, c, node)
	})
}

// observe returns the state of a node's instance. Only an instance that a provider's id names can
// be gone: a name alone may have been another node's.
func observe(ctx context.Context, c *cloud.Client, node backend.NodeIdentity) (backend.Machine, error) {
	found, err := c.InstancesOf(ctx, node)
	if err != nil {
		return backend.MachineUnknown, err
	}
	if _, named := cloud.ParseProviderID(node.ProviderID); named && len(found) == 0 {
		return backend.MachineGone, nil
	}
	if len(found) != 1 {
		return backend.MachineUnknown, nil
	}
	return machineOfStatus[found[0].Status], nil
}

// attachments reads which instances have this backend's disks, and how.
func (b *gceBackend) attachments(ctx context.Context, c *cloud.Client) ([]backend.Attached, error) {
	held, err := b.owner.ListDisks(ctx, c)
	if err != nil || len(held) == 0 {
		return nil, err
	}
	ids, users := map[string]string{}, map[cloud.InstanceRef]bool{}
	for _, one := range held {
		ids[one.Path()] = one.Name
		for _, user := range one.Users {
			if at, is := cloud.ParseInstanceLink(user); is {
				users[at] = true
			}
		}
	}
	instances, err := c.InstancesAt(ctx, users)
	if err != nil {
		return nil, fmt.Errorf("listing instances: %w", err)
	}
	var all []backend.Attached
	for _, on := range instances {
		for _, has := range on.Disks {
			if id, ours := ids[cloud.PathOf(has.Source)]; ours {
				all = append(all, backend.Attached{ID: id, ProviderID: on.At.ProviderID(), ReadOnly: has.Mode == cloud.ReadOnly})
			}
		}
	}
	return all, nil
}
