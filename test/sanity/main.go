// Command sanity is `make test-sanity`: csi-sanity, the conformance tests of the Container
// Storage Interface, against each of Stowage's drivers.
//
// The Node and Identity services are those of the real node agent, on the sockets on
// which a kubelet finds them: one agent runs on the machine itself, for local volumes and
// disks, and one in a User Mode Linux guest, whose kernel mounts NFS. The Controller
// service is package controller's, over the real backends: with local volumes, gce-mock
// and nfs-ganesha. No spec may be skipped but where what it needs isn't claimed.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/stowage-dev/stowage/test/guests"
)

// mostTime is how long all of it may take.
const mostTime = 6 * time.Minute

// suiteArgument has this program run one suite, and end.
const suiteArgument = "suite"

func main() {
	if len(os.Args) == 3 && os.Args[1] == suiteArgument {
		if err := runSuite(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	guests.Run(guests.Test{Name: "sanity", MostTime: mostTime, Tell: tell, Services: services})
}

// services are what a node can be asked.
func services() ([]any, error) { return []any{&Host{}}, nil }
