package plugins

import (
	"context"

	"github.com/fsnotify/fsnotify"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// watch reports changes of folders. If the kernel allows no watch, it reports none: the folder is
// read regularly anyway.
type watch struct {
	changed chan struct{}
	folders *fsnotify.Watcher
}

func newWatch(ctx context.Context, folder string) *watch {
	w := &watch{changed: make(chan struct{}, 1)}
	var err error
	if w.folders, err = fsnotify.NewWatcher(); err != nil {
		logf.FromContext(ctx).Error(err, "watching the folder in which CSI drivers register: it is read regularly instead", "folder", folder)
		return w
	}
	go w.run()
	return w
}

// run ends when the watch is closed.
func (w *watch) run() {
	for {
		select {
		case _, open := <-w.folders.Events:
			if !open {
				return
			}
		case _, open := <-w.folders.Errors:
			// Such as a queue that is full: what it lost may be a socket.
			if !open {
				return
			}
		}
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

// add watches folders, too. A folder that is watched already stays so.
func (w *watch) add(folders []string) {
	if w.folders == nil {
		return
	}
	for _, folder := range folders {
		// A folder that is gone again, or one too many for the kernel, is read regularly.
		_ = w.folders.Add(folder)
	}
}

func (w *watch) close() {
	if w.folders != nil {
		_ = w.folders.Close()
	}
}
