// Command stowage-mount makes one kernel call that may wait for a server, and ends. The node agent
// starts it, so that the agent never waits itself: see package mount. It is a program of its own
// because many of them wait at once when a server is silent. Each one takes memory of the agent's
// container.
package main

import (
	"fmt"
	"os"

	"github.com/stowage-dev/stowage/internal/mount/remote"
)

func main() {
	remote.ServeCall()
	fmt.Fprintln(os.Stderr, "stowage-mount: the node agent starts this program, for one call each time")
	os.Exit(2)
}
