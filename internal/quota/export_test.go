package quota

import "os"

// Leave takes a directory out of its project.
func Leave(dir *os.File) error { return setProject(dir, 0) }
