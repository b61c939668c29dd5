package localvolume

import "os"

// lookAtDirectory looks at a volume that is a directory. One without a quota has to be
// walked to know what it takes up.
func (s *sight) lookAtDirectory(dir *os.File, volume Volume) error {
	if err := checkReads(dir); err != nil {
		return err
	}
	there, err := findLimited(dir, volume)
	if there == nil || err != nil {
		return err
	}
	s.enforced = true
	s.usage = &Usage{Bytes: there.usage.Bytes, Size: there.usage.Limit.Bytes, Inodes: &there.usage.Inodes}
	s.mostInodes = there.usage.Limit.Inodes
	return nil
}
