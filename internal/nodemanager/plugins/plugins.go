// Package plugins finds the CSI drivers that register on a node without a kubelet. It speaks the
// protocol of the kubelet's plug-in watcher: a driver puts a socket into a folder, and is asked
// there for its name and its own socket. It is registered until the first socket is gone.
//
// cmd/node-agent runs it, and package socket handles what it finds. It calls no method of CSI.
// Each socket is followed by a goroutine of its own, so that one which hangs delays no other.
package plugins

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// FolderName is the folder of registration sockets in a kubelet's folder.
	FolderName = "plugins_registry"
	// rescanInterval is how often the folder is read without an event, and scanPause how long
	// after a read the next one comes at the earliest.
	rescanInterval = 10 * time.Second
	scanPause      = 100 * time.Millisecond
	folderMode     = 0o750
)

// Options are what a Registry is made of.
type Options struct {
	// Folder has the registration sockets. It is made if it doesn't exist.
	Folder string
	// IsReserved reports whether a driver's name is the agent's own.
	IsReserved func(name string) bool
	// Handler takes up what registers.
	Handler Handler
}

// Registry follows the sockets of a folder. It is a runnable of the agent's controller manager.
type Registry struct {
	Options
	names   names
	sockets map[string]*socket
	running sync.WaitGroup
	// full: the log has that there are too many sockets.
	full bool
}

// New returns a Registry that has found nothing yet.
func New(options Options) *Registry {
	return &Registry{Options: options, sockets: map[string]*socket{}}
}

// Start implements manager.Runnable. Its end deregisters nothing: pods keep their volumes.
func (r *Registry) Start(ctx context.Context) error {
	defer r.running.Wait()
	if err := os.MkdirAll(r.Folder, folderMode); err != nil {
		return fmt.Errorf("making the folder in which CSI drivers register: %w", err)
	}
	watching := newWatch(ctx, r.Folder)
	defer watching.close()
	rescan := time.NewTicker(rescanInterval)
	defer rescan.Stop()
	for {
		r.scan(ctx, watching)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(scanPause):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-watching.changed:
		case <-rescan.C:
		}
	}
}

// scan compares the sockets in the folder with those that are followed.
func (r *Registry) scan(ctx context.Context, watching *watch) {
	found, folders, err := list(r.Folder)
	if err != nil {
		logf.FromContext(ctx).Error(err, "looking for CSI drivers that register", "folder", r.Folder)
		return
	}
	watching.add(folders)
	ended := map[string]chan struct{}{}
	for path, followed := range r.sockets {
		if found[path] != followed.identity {
			close(followed.gone)
			delete(r.sockets, path)
			ended[path] = followed.ended
		}
	}
	for path, identity := range found {
		if _, followed := r.sockets[path]; !followed && r.hasRoom(ctx) {
			r.follow(ctx, &socket{names: &r.names, isReserved: r.IsReserved, handler: r.Handler, path: path, identity: identity, previous: ended[path]})
		}
	}
}

func (r *Registry) hasRoom(ctx context.Context) bool {
	if len(r.sockets) < maxSockets {
		return true
	}
	if !r.full {
		logf.FromContext(ctx).Error(errFull, "looking for CSI drivers that register", "folder", r.Folder)
	}
	r.full = true
	return false
}

var errFull = errors.New("the folder has more than 128 sockets, and the rest is left out: remove those that no driver serves")

func (r *Registry) follow(ctx context.Context, followed *socket) {
	followed.gone, followed.ended = make(chan struct{}), make(chan struct{})
	r.sockets[followed.path] = followed
	r.running.Go(func() { followed.run(ctx) })
}
