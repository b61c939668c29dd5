package gce

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/diskclass"
	"github.com/stowage-dev/stowage/internal/backend/gce/newdisk"
	"github.com/stowage-dev/stowage/internal/backend/gce/place"
	"github.com/stowage-dev/stowage/internal/volume"
)

// zonesAtOnce is how many disks of one volume are made at once.
const zonesAtOnce = 4

// provisionInEach finds or makes a disk in each zone, from the same snapshot. No pod writes them, so they stay alike: a later
// call makes what an earlier one couldn't.
func (b *gceBackend) provisionInEach(ctx context.Context, c *cloud.Client, request backend.Request) (*backend.Volume, error) {
	if err := checkOnlyRead(request); err != nil {
		return nil, err
	}
	class, err := b.maker().ClassOf(request, newdisk.Origin{})
	if err != nil {
		return nil, err
	}
	found, err := b.owner.FindAllDisks(ctx, c, request.ID)
	if err != nil {
		return nil, err
	}
	zones, err := b.zonesOfEach(ctx, c, request, class, found)
	if err != nil {
		return nil, err
	}
	made, err := b.makeInEach(ctx, c, newdisk.Draft{Request: request, Class: class, InZones: zones}, found)
	all, failures := slices.Concat(found, made), []error{err}
	for _, one := range all {
		failures = append(failures, b.checkMade(one, request))
	}
	if err := firstOpen(append(failures, checkAlike(all))...); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(one, other *cloud.Disk) int { return cmp.Compare(one.Path(), other.Path()) })
	return b.volume(request, all...)
}

// checkOnlyRead returns an error of kind Invalid where disks in several zones wouldn't stay alike, or can't begin so.
func checkOnlyRead(request backend.Request) error {
	switch source := request.Source; {
	case !volume.OnlyReaders(request.AccessModes):
		return backend.Invalid.Errorf("the StorageClass asks for a disk in each zone (%s), which pods can only read: ask for ReadOnlyMany alone, or use another class",
			stowagev1alpha1.GCEEachZoneParameter)
	case !source.IsUnknown() && source.Snapshot == "":
		return backend.Invalid.Errorf("the StorageClass asks for a disk in each zone (%s), and the copy of a disk is in that disk's zone: restore a VolumeSnapshot instead",
			stowagev1alpha1.GCEEachZoneParameter)
	}
	return nil
}

// zonesOfEach are those in which a volume is to have a disk. Where the backend has none for it any more, the disks of an earlier
// call suffice. Only the first call decides by the node: others know where the volume is.
func (b *gceBackend) zonesOfEach(ctx context.Context, c *cloud.Client, request backend.Request, class diskclass.Class, found []*cloud.Disk) ([]string, error) {
	if len(found) > 0 {
		request.Node = nil
	}
	wanted, err := b.maker().Zones(class).Each(request)
	switch {
	case err != nil && len(found) > 0:
		return nil, nil
	case errors.Is(err, backend.WrongNode):
		return nil, cmp.Or(c.CheckNoInsertNear(ctx, request.ID, append(slices.Clone(c.Zones), request.Node.Labels[corev1.LabelTopologyZone])...), err)
	}
	return wanted, err
}

// makeInEach makes the disks of a draft that aren't there, and returns those that it made.
func (b *gceBackend) makeInEach(ctx context.Context, c *cloud.Client, plan newdisk.Draft, found []*cloud.Disk) ([]*cloud.Disk, error) {
	missing := slices.DeleteFunc(slices.Clone(plan.InZones), func(zone string) bool {
		return slices.ContainsFunc(found, func(one *cloud.Disk) bool { return one.At() == place.Zone(zone) })
	})
	if len(missing) == 0 {
		return nil, nil
	}
	from, err := b.maker().OriginOf(ctx, c, plan.Request)
	if err != nil {
		return nil, err
	}
	plan.From = from
	made, failures := make([]*cloud.Disk, len(missing)), make([]error, len(missing))
	var inserts errgroup.Group
	inserts.SetLimit(zonesAtOnce)
	for i, zone := range missing {
		here := plan
		here.Zone = zone
		inserts.Go(func() error {
			made[i], failures[i] = b.makeOne(ctx, c, here)
			return nil
		})
	}
	_ = inserts.Wait() // failures has the errors of all
	return slices.DeleteFunc(made, func(one *cloud.Disk) bool { return one == nil }), firstOpen(failures...)
}

// makeOne makes one disk of a volume. No other node would help where a zone has no room: Exhausted would have the scheduler
// asked for one.
func (b *gceBackend) makeOne(ctx context.Context, c *cloud.Client, plan newdisk.Draft) (*cloud.Disk, error) {
	made, err := b.maker().Make(ctx, c, plan)
	if err == nil {
		return made, nil
	}
	err = b.spec.Caller().Translate(fmt.Sprintf("making disk %s in %s", plan.Request.ID, plan.At()), err)
	if errors.Is(err, backend.Exhausted) {
		err = backend.NotReady.Errorf("%w", err)
	}
	return nil, err
}

// checkAlike returns an error of kind Conflict where disks were made from different snapshots that had one name after the other.
func checkAlike(found []*cloud.Disk) error {
	for _, one := range found {
		if first := found[0]; one.SourceSnapshotId != first.SourceSnapshotId || one.SourceImageId != first.SourceImageId {
			return backend.Conflict.Errorf("disks %s and %s were made from different snapshots of one name: create the claim again", first.Path(), one.Path())
		}
	}
	return nil
}

// firstOpen picks the error that a caller needs to know: while the effect of one call is open, the others don't count.
func firstOpen(failures ...error) error {
	isOpen := func(err error) bool {
		return err != nil && (backend.KindOf(err) == "" || backend.Unfinished(err) || errors.Is(err, backend.Unavailable))
	}
	if at := slices.IndexFunc(failures, isOpen); at >= 0 {
		return failures[at]
	}
	return cmp.Or(failures...)
}
