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
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// remainingType is the type, for Operations, of volumes of which only mounted parts remain.
const remainingType = "subPath"

// subPaths mounts the parts of volumes that containers ask for by subPath, and unmounts them.
type subPaths struct {
	tree       poddir.Tree
	mounter    mount.Mounter
	objects    content.Reader
	operations *operations.Operations
}

// ensureMounted mounts the parts of a volume, once the volume is published. A part that was removed
// from the volume, or whose volume was mounted again, is mounted again only while its container
// doesn't run. A running container keeps what it has.
func (s *subPaths) ensureMounted(ctx context.Context, at *pass, volume *DesiredVolume, state podstatus.Progress) podstatus.Progress {
	if !state.Done || volume.Resolved.IsBlock() {
		return state
	}
	resolved := *volume.Resolved
	missing := s.missing(at, &resolved)
	if len(missing) == 0 {
		return state
	}
	parts, err := s.resolve(ctx, at.pod, &resolved, missing)
	if err != nil {
		return volume.failed(pendingIfUnreadable(err))
	}
	queue := volumes.QueueOf(resolved.Plugin, resolved.Spec, s.tree.VolumeDir(at.pod.UID, resolved.Location()))
	task := operations.Task{Kind: operations.Mounting, Type: queue, Dir: s.tree.SubPathsDir(at.pod.UID, resolved.Name()), Pod: at.pod.UID}
	return progressOf(at.operations.Do(ctx, task, func(ctx context.Context) error {
		return s.mount(ctx, at.pod.UID, &resolved, parts)
	}))
}

// missing is the parts of a volume that containers ask for and don't have.
func (s *subPaths) missing(at *pass, resolved *resolve.ResolvedVolume) []subpath.Wanted {
	visible := resolved.VisibleAt(s.tree, at.pod.UID)
	var missing []subpath.Wanted
	for _, wanted := range subpath.Of(at.pod, resolved.Volume.Name) {
		if container.IsOver(at.pod, wanted.Container) {
			continue
		}
		target := s.tree.SubPath(at.pod.UID, resolved.Name(), wanted.Container.Name, wanted.Index)
		switch subpath.Inspect(at.table, visible, target) {
		case subpath.Missing:
			missing = append(missing, wanted)
		case subpath.Stale:
			if !container.IsRunning(at.pod, wanted.Container.Name) {
				missing = append(missing, wanted)
			}
		case subpath.Mounted:
		}
	}
	return missing
}

// resolve finds the paths of parts, which may have variables.
func (s *subPaths) resolve(ctx context.Context, pod *corev1.Pod, resolved *resolve.ResolvedVolume, missing []subpath.Wanted) ([]subpath.Part, error) {
	parts := make([]subpath.Part, 0, len(missing))
	for _, wanted := range missing {
		part := subpath.Part{
			Path:    wanted.Mount.SubPath,
			Written: wanted.Written(),
			Target:  s.tree.SubPath(pod.UID, resolved.Name(), wanted.Container.Name, wanted.Index),
			Access:  accessOf(resolved),
			Fixed:   content.IsProjected(resolved.Volume),
		}
		if wanted.Mount.ReadOnly {
			part.Access = mount.ReadOnly
		}
		if expression := wanted.Mount.SubPathExpr; expression != "" {
			path, err := environment.Of{Pod: pod, Container: wanted.Container, Reader: s.objects}.Path(ctx, expression)
			if err != nil {
				return nil, err
			}
			part.Path = path
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// mount mounts parts of a volume. It runs as an operation.
func (s *subPaths) mount(ctx context.Context, uid types.UID, resolved *resolve.ResolvedVolume, parts []subpath.Part) error {
	visible := resolved.VisibleAt(s.tree, uid)
	open, err := safepath.OpenBeneath(s.tree.PodDir(uid), visible)
	if err != nil {
		return fmt.Errorf("opening the volume to mount a part of it: %w", err)
	}
	defer open.Close()
	// Read again now that it is open: if the volume was unmounted since, what is open is the
	// directory below it.
	table, err := s.mounter.Table()
	if err != nil {
		return err
	}
	published, err := resolved.Plugin.IsPublished(table, resolved.Spec, s.tree.VolumeDir(uid, resolved.Location()))
	if err == nil && !published {
		err = resolve.WaitFor("the volume is unmounted: it is mounted again first")
	}
	if err != nil {
		return err
	}
	return subpath.MountMissing(ctx, s.mounter, subpath.Volume{Open: open, Path: visible, Table: table}, parts)
}

// ensureGone unmounts the parts of a pod's volumes, which comes before the volumes. It finds
// them by the directories and the mount table alone.
func (s *subPaths) ensureGone(ctx context.Context, uid types.UID, running operations.View, found []poddir.Location, queueOf func(poddir.Location) string) (states []podstatus.Progress, problems []error) {
	left, err := s.tree.SubPaths(uid)
	if err != nil {
		return nil, []error{err}
	}
	for _, name := range left {
		task := operations.Task{Kind: operations.Unmounting, Type: remainingType, Dir: s.tree.SubPathsDir(uid, name), Pod: uid}
		for _, at := range found {
			if at.Name == name {
				task.Type = queueOf(at)
			}
		}
		outcome := running.Do(ctx, task, func(context.Context) error { return subpath.Remove(s.mounter, task.Dir) })
		if outcome.Err != nil {
			problems = append(problems, fmt.Errorf("parts of volume %s: %w", name, outcome.Err))
		}
		states = append(states, progressOf(outcome))
	}
	return states, problems
}

// remain reports whether parts of a volume are mounted, or are about to be.
func (s *subPaths) remain(uid types.UID, volume string) bool {
	dir := s.tree.SubPathsDir(uid, volume)
	// Operations first: a running one may make the directory, and no new one begins.
	if s.operations.IsRunningAt(dir) {
		return true
	}
	_, err := os.Lstat(dir)
	return !errors.Is(err, os.ErrNotExist)
}
