package nfs

import (
	"context"
	"fmt"
	"strings"
	"time"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	nfsrecycle "github.com/stowage-dev/stowage/internal/backend/nfs/recycle"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

var _ backend.Recycler = (*Kind)(nil)

// Recycle empties a directory of any server that speaks NFSv3.
//
// It moves everything into a directory of the caller's first, and removes it there. A call that
// completes has removed the directories of all other callers before, and the server moves nothing
// into a directory that is gone. So a stale leader can't move what a new claim has written since.
func (k *Kind) Recycle(ctx context.Context, request backend.Recycling) error {
	return k.recycle(ctx, request, removalSlice)
}

func (k *Kind) recycle(ctx context.Context, request backend.Recycling, slice time.Duration) error {
	doing := fmt.Sprintf("recycling volume %s", request.Volume)
	spec, err := settingsForRecycling(request)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	at := &nfsBackend{spec: spec, share: k.share("", spec)}
	_, err = onShare(ctx, at, doing, func(ctx context.Context, root tree.Dir) (any, error) {
		return nil, nfsrecycle.Recycle(ctx, root, nfsrecycle.Pass{Recycling: request, Until: time.Now().Add(slice)})
	})
	return err
}

func settingsForRecycling(request backend.Recycling) (settings, error) {
	spec := stowagev1alpha1.NFSBackend{Server: request.Server, Path: stowagev1alpha1.AbsolutePath(request.Path)}
	for _, options := range request.MountOptions {
		for option := range strings.SplitSeq(options, ",") {
			spec.MountOptions = append(spec.MountOptions, stowagev1alpha1.MountOption(option))
		}
	}
	return settingsFrom(spec)
}
