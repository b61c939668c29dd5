package store

import (
	"context"

	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/limit"
)

// Grant gives a volume that was made the capacity that it asks for, if there is
// room for it beside the others of the node. What was granted once is held for the
// volume until its NodeVolume says so, or asks for less.
func (s *Store) Grant(ctx context.Context, volume layout.Volume, others layout.Lister) error {
	turn, err := s.Rooms.TakeTurn(ctx, volume.Path)
	if err != nil {
		return err
	}
	defer turn.End()
	if volume.Image != nil {
		return s.growImage(turn, volume, others)
	}
	if s.Rooms.Has(volume.Name, volume.Bytes) < volume.Bytes {
		if err := s.Rooms.CheckGrowth(turn, volume, volume.Used, others); err != nil {
			return err
		}
	}
	if err := limit.Set(s.Base, volume, volume.Bytes); err != nil {
		return err
	}
	s.Rooms.Grew(volume.Name, volume.Bytes)
	return nil
}
