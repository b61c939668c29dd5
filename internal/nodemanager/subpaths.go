package nodemanager

import (
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/nodemanager/container"
	"github.com/stowage-dev/stowage/internal/nodemanager/content"
	"github.com/stowage-dev/stowage/internal/nodemanager/environment"
	"github.com/stowage-dev/stowage/internal/nodemanager/operations"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/podstatus"
	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
	"github.com/stowage-dev/stowage/internal/nodemanager/subpath"
)

// leftType is the type, for Operations, of volumes of which only mounted parts are left.
const leftType = "subPath"

// ensureSubPaths mounts the parts of a volume that containers ask for, once the volume
// is published. A part that was removed from the volume meanwhile, or whose volume was
// mounted anew, is mounted again when its container doesn't run: one that runs has it,
// whatever becomes of the mount, and one that is over needs none.
func (r *Reconciler) ensureSubPaths(ctx context.Context, pod *corev1.Pod, volume *DesiredVolume, table mount.Table, at podstatus.Progress) podstatus.Progress {
	if !at.Done || volume.Resolved.IsBlock() {
		return at
	}
	resolved := *volume.Resolved
	missing := r.missingParts(pod, &resolved, table)
	if len(missing) == 0 {
		return at
	}
	parts, err := r.partsOf(ctx, pod, &resolved, missing)
	if isUnreadable(err) {
		err = resolve.WaitFor("waiting: %v", err)
	}
	if err != nil {
		volume.Waits++
		return podstatus.Progress{Err: err, Again: podstatus.ClaimWait(volume.Waits)}
	}
	task := operations.Task{Kind: operations.Mounting, Type: resolved.Plugin.Name(), Dir: r.Tree.SubPathsDir(pod.UID, resolved.Name()), Pod: pod.UID}
	return progressOf(r.operations.Do(ctx, task, func(ctx context.Context) error {
		return r.showParts(ctx, pod.UID, &resolved, parts)
	}))
}

// missingParts is what containers ask for of a volume and don't have.
func (r *Reconciler) missingParts(pod *corev1.Pod, resolved *resolve.ResolvedVolume, table mount.Table) []subpath.Wanted {
	visible := r.visibleAt(pod.UID, resolved)
	var missing []subpath.Wanted
	for _, wanted := range subpath.Of(pod, resolved.Volume.Name) {
		if container.IsOver(pod, wanted.Container) {
			continue
		}
		target := r.Tree.SubPath(pod.UID, resolved.Name(), wanted.Container.Name, wanted.Index)
		switch subpath.Look(table, visible, target) {
		case subpath.Missing:
			missing = append(missing, wanted)
		case subpath.Stale:
			if !container.IsRunning(pod, wanted.Container.Name) {
				missing = append(missing, wanted)
			}
		case subpath.Shown:
		}
	}
	return missing
}

// partsOf finds out what the paths of parts come to.
func (r *Reconciler) partsOf(ctx context.Context, pod *corev1.Pod, resolved *resolve.ResolvedVolume, missing []subpath.Wanted) ([]subpath.Part, error) {
	parts := make([]subpath.Part, 0, len(missing))
	for _, wanted := range missing {
		part := subpath.Part{
			Path:    wanted.Mount.SubPath,
			Written: wanted.Written(),
			Target:  r.Tree.SubPath(pod.UID, resolved.Name(), wanted.Container.Name, wanted.Index),
			Access:  accessIn(resolved),
			Fixed:   content.Shows(resolved.Volume),
		}
		if wanted.Mount.ReadOnly {
			part.Access = mount.ReadOnly
		}
		if expression := wanted.Mount.SubPathExpr; expression != "" {
			path, err := environment.Of{Pod: pod, Container: wanted.Container, Reader: r.Objects}.Path(ctx, expression)
			if err != nil {
				return nil, err
			}
			part.Path = path
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// showParts mounts parts of a volume. It runs beside the passes.
func (r *Reconciler) showParts(ctx context.Context, uid types.UID, resolved *resolve.ResolvedVolume, parts []subpath.Part) error {
	visible := r.visibleAt(uid, resolved)
	open, err := safepath.OpenBeneath(r.Tree.PodDir(uid), visible)
	if err != nil {
		return fmt.Errorf("opening the volume to mount a part of it: %w", err)
	}
	defer open.Close()
	// Looked at once more, now that it is open: a mount may have gone since, and what is
	// open is then the directory below it.
	table, err := r.Mounter.Table()
	if err != nil {
		return err
	}
	published, err := resolved.Plugin.IsPublished(table, resolved.Spec, r.Tree.VolumeDir(uid, resolved.Location()))
	if err == nil && !published {
		err = resolve.WaitFor("the volume was unmounted meanwhile: it is mounted again first")
	}
	for _, part := range parts {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && subpath.Look(table, visible, part.Target) != subpath.Shown {
			err = subpath.Show(r.Mounter, open, part)
		}
	}
	if err != nil {
		return err
	}
	return r.checkShown(visible, parts)
}

// checkShown makes sure that what was mounted counts as shown: else it would be mounted
// again, for ever.
func (r *Reconciler) checkShown(visible string, parts []subpath.Part) error {
	table, err := r.Mounter.Table()
	if err != nil {
		return err
	}
	for _, part := range parts {
		if subpath.Look(table, visible, part.Target) != subpath.Shown {
			return fmt.Errorf("subPath %s lies on another file system than its volume, or was removed from it meanwhile", part.Written)
		}
	}
	return nil
}

// visibleAt is where a pod sees a volume.
func (r *Reconciler) visibleAt(uid types.UID, resolved *resolve.ResolvedVolume) string {
	return resolved.Plugin.Path(r.Tree.VolumeDir(uid, resolved.Location()))
}

// accessIn is what a pod's containers may do with a volume at most: of two volumes with
// the same claim, one may be only for reading.
func accessIn(resolved *resolve.ResolvedVolume) mount.Access {
	claim := resolved.Volume.PersistentVolumeClaim
	if claim != nil && claim.ReadOnly || content.Shows(resolved.Volume) {
		return mount.ReadOnly
	}
	return resolved.Access
}

// ensurePartsGone takes away what is mounted of parts of a pod's volumes, which comes
// before the volumes themselves. What there is, the directories and the mount table tell.
func (r *Reconciler) ensurePartsGone(ctx context.Context, uid types.UID, found []poddir.Location) (states []podstatus.Progress, problems []error) {
	left, err := r.Tree.SubPaths(uid)
	if err != nil {
		return nil, []error{err}
	}
	for _, name := range left {
		task := operations.Task{Kind: operations.Unmounting, Type: leftType, Dir: r.Tree.SubPathsDir(uid, name), Pod: uid}
		for _, at := range found {
			if at.Name == name {
				task.Type = at.Plugin
			}
		}
		outcome := r.operations.Do(ctx, task, func(context.Context) error { return subpath.Remove(r.Mounter, task.Dir) })
		if outcome.Err != nil {
			problems = append(problems, fmt.Errorf("parts of volume %s: %w", name, outcome.Err))
		}
		states = append(states, progressOf(outcome))
	}
	return states, problems
}

// hasParts says whether parts of a volume are mounted, or are about to be.
func (r *Reconciler) hasParts(uid types.UID, volume string) bool {
	dir := r.Tree.SubPathsDir(uid, volume)
	// Asked first: what runs may make the directory, and nothing is begun from here on.
	if r.operations.IsRunningAt(dir) {
		return true
	}
	_, err := os.Lstat(dir)
	return !errors.Is(err, os.ErrNotExist)
}
