package loopdev

import (
	"fmt"

	"github.com/stowage-dev/stowage/internal/holder"
)

// explain names a process that keeps a device, and how to release it. It reads no more than it
// needs for one: the next attempt names the next. The text is for users: it has no command line.
func explain(device holder.Thing, processes string) string {
	for h := range device.Holders(processes) {
		process := fmt.Sprintf("process %d (%q)", h.PID, h.Name)
		if h.How != holder.Mounted {
			return process + " has it open: end the process, and the detach is tried again"
		}
		return fmt.Sprintf("%s has it mounted at %q: unmount it there (nsenter -m -t %d umount …), and the detach is tried again",
			process, h.At, h.PID)
	}
	return fmt.Sprintf("no process that the agent sees has it: 'fuser -v %s' on the node names what has it open; end that, and the detach is tried again", device.Path)
}
