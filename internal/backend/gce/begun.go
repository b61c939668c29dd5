package gce

import (
	"context"
	"slices"

	"github.com/stowage-dev/stowage/internal/backend"

	corev1 "k8s.io/api/core/v1"
)

// checkNotBegun looks for a disk that was asked for and isn't to be seen yet. What was
// asked for and hasn't arrived nobody sees: whoever doesn't know how a call ended repeats
// it before this.
func (c *cloud) checkNotBegun(ctx context.Context, id string, zones ...string) error {
	for _, zone := range zones {
		inserts, err := c.running(ctx, zone, "insert")
		if err != nil {
			return err
		}
		for _, operation := range inserts {
			if pathOf(operation.TargetLink) == c.diskPath(zone, id) {
				return backend.InProgress.Errorf("disk %s is being made in zone %s (operation %s): waiting for it to be there", id, zone, operation.Name)
			}
		}
	}
	return nil
}

// checkNotBegunNear looks for a disk that was asked for, and isn't to be seen yet, in
// the zone of a node that is none of the backend's any more: whoever is told WrongNode
// takes it that nothing is being made.
func (c *cloud) checkNotBegunNear(ctx context.Context, request backend.Request) error {
	zone := request.Node.Labels[corev1.LabelTopologyZone]
	if zone == "" || slices.Contains(c.zones, zone) {
		return nil
	}
	err := c.checkNotBegun(ctx, request.ID, zone)
	switch reasonOf(err) {
	case notFound, invalid:
		// The cloud has no such zone.
		return nil
	}
	return err
}
