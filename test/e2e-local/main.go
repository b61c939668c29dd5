// Command e2e-local is `make e2e-local`: the tests of local volumes and disks for which
// a kernel must do what that of the machine may not: keep project quotas, let root grow
// a mounted ext4, and lose a disk that is mounted. They run in a User Mode Linux guest;
// what the machine's kernel can do is proved there, in a fraction of the time.
package main

import (
	"time"

	"github.com/stowage-dev/stowage/test/guesttests"
)

// mostTime is how long all of it may take.
const mostTime = 5 * time.Minute

func main() {
	guesttests.Run{Name: "e2e-local", MostTime: mostTime, Suites: []guesttests.Suite{
		{Package: "internal/quota"},
		{Package: "internal/device"},
		{Package: "internal/nodemanager/localvolume", Run: "Quota"},
		{Package: "internal/nodemanager/volumes/csi", Run: "Gr[eo]w|Scsi"},
		{Package: "internal/nodemanager/volumes/emptydir", Run: "Quota"},
	}}.Main()
}
