package gcemock

import "strconv"

// removeContent removes the contents of a disk, or of a copy of it, that is gone.
func (s *Engine) removeContent(id uint64, of string) {
	if err := s.contents.remove(id); err != nil {
		s.options.Log.Error(err, "a content file is left behind", "of", of)
	}
}

// dropInstants removes the instant snapshots of a disk, which go with it.
func (s *Engine) dropInstants(diskID uint64) {
	for _, path := range s.instants.below("projects") {
		row := s.instants.rows[path]
		if row.SourceDiskId == strconv.FormatUint(diskID, 10) && row.Status == statusReady {
			s.instants.remove(path)
			s.removeContent(row.Id, path)
		}
	}
}
