// Command e2e-node is `make e2e-node`: all tests of the node side, in a User Mode Linux
// guest. Its kernel is another one, and older, than most machines', with a mount table
// that nothing but the tests depends on.
package main

import (
	"time"

	"github.com/stowage-dev/stowage/test/guesttests"
)

// mostTime is how long all of it may take.
const mostTime = 30 * time.Minute

func main() {
	guesttests.Run{Name: "e2e-node", MostTime: mostTime, Suites: []guesttests.Suite{
		{Package: "internal/mount"},
		{Package: "internal/device"},
		{Package: "internal/ownership"},
		// What is killed before each of its steps is `make kill-matrix`.
		{Package: "internal/nodemanager", Skip: "AfterAKill|ThatIsKilled"},
		{Package: "internal/nodemanager/subpath"},
		{Package: "internal/nodemanager/localvolume"},
		{Package: "internal/nodemanager/volumes"},
		{Package: "internal/nodemanager/volumes/apidata"},
		{Package: "internal/nodemanager/volumes/atomicdir"},
		{Package: "internal/nodemanager/volumes/csi"},
		{Package: "internal/nodemanager/volumes/emptydir"},
		{Package: "internal/nodemanager/volumes/hostpath"},
		{Package: "internal/nodemanager/volumes/inlinenfs"},
		{Package: "internal/nodemanager/volumes/local"},
		{Package: "internal/nodemanager/volumes/nfs"},
	}}.Main()
}
