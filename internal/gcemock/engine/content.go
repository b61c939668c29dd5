package engine

import (
	"strconv"

	"github.com/stowage-dev/stowage/internal/gcemock/state"
)

// RemoveContent removes the contents of a disk, or of a copy of it, that is gone.
func (s *Engine) RemoveContent(id uint64, of string) {
	if err := s.Contents.Remove(id); err != nil {
		s.Options.Log.Error(err, "a content file is left behind", "of", of)
	}
}

// DropInstants removes the instant snapshots of a disk, which go with it.
func (s *Engine) DropInstants(diskID uint64) {
	for _, path := range s.Instants.Below("projects") {
		row := s.Instants.Rows[path]
		if row.SourceDiskId == strconv.FormatUint(diskID, 10) && row.Status == state.StatusReady {
			s.Instants.Remove(path)
			s.RemoveContent(row.Id, path)
		}
	}
}
