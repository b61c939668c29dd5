// Command e2e-nfs is `make e2e-nfs`: NFS volumes with a real kernel client and real
// servers. Two User Mode Linux guests are the nodes, nfs-ganesha is the servers, which
// are stopped, frozen and started under load. First the node agent's volume type is
// driven directly; then a whole Stowage serves claims and pods, with its own agent on
// each node.
package main

import (
	"context"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/nfs"
	"github.com/stowage-dev/stowage/test/guests"
)

// mostTime is how long all of it may take.
const mostTime = 6 * time.Minute

func main() {
	// What the client libraries log while a server is away is no news here.
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	guests.Run(guests.Test{Name: "e2e-nfs", MostTime: mostTime, Tell: tell, Services: services})
}

// services are what each node can be asked.
func services() ([]any, error) {
	plugin, err := nfs.New(mount.NewApart(), filepath.Join(pluginDir, "nfs"))
	if err != nil {
		return nil, err
	}
	return []any{&Plugin{plugin: plugin}}, nil
}

// tell tells all of it.
func tell(ctx context.Context, folder guests.Folder) error {
	s := newTale(ctx, folder)
	s.Do("two NFS servers and two nodes with a kernel of their own start", s.boot)
	for _, chapter := range chapters {
		chapter(s)
	}
	if s.Err() != nil {
		s.show()
	}
	return s.End()
}
