package localvolume

import "context"

// Grant gives a volume that was made the capacity that it asks for, if there is
// room for it beside the others of the node. What was granted once is held for the
// volume until its LocalVolume says so, or asks for less.
func (s *Store) Grant(ctx context.Context, volume Volume, others Lister) error {
	turn, err := s.Rooms.takeTurn(ctx, volume.Path)
	if err != nil {
		return err
	}
	defer turn.end()
	if volume.Image != nil {
		return s.growImage(turn, volume, others)
	}
	if s.Rooms.has(volume.Name, volume.Bytes) < volume.Bytes {
		if err := s.Rooms.checkGrowth(turn, volume, volume.Used, others); err != nil {
			return err
		}
	}
	if err := limit(s.Base, volume, volume.Bytes); err != nil {
		return err
	}
	s.Rooms.grew(volume.Name, volume.Bytes)
	return nil
}
