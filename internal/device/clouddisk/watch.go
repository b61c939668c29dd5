package clouddisk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// arrivals are the changes of a folder by which devices come and go.
const arrivals = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_ONLYDIR

// watch listens for changes of the folder, or of the folder that it will be made in, and of
// /dev with the kernel's own names. The channel gets one element for any number of them.
func (f DiskFolder) watch() (changes <-chan struct{}, stop func(), err error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, nil, fmt.Errorf("listening for disks: %w", err)
	}
	// Non-blocking, and so one that Close ends a Read of.
	events := os.NewFile(uintptr(fd), "inotify")
	w := &watcher{folder: f.Path, events: events, descriptor: fd, changed: make(chan struct{}, 1)}
	if err := w.add(); err != nil {
		events.Close()
		return nil, nil, err
	}
	var running sync.WaitGroup
	running.Go(w.listen)
	return w.changed, func() { events.Close(); running.Wait() }, nil
}

type watcher struct {
	folder     string
	events     *os.File
	descriptor int
	changed    chan struct{}
}

// add watches the folders that exist. A second watch of one changes nothing.
func (w *watcher) add() error {
	for _, path := range []string{"/dev", w.folder} {
		for {
			_, err := unix.InotifyAddWatch(w.descriptor, path, arrivals)
			if err == nil {
				break
			}
			if !errors.Is(err, unix.ENOENT) || path == "/" {
				return fmt.Errorf("listening for disks in %s: %w", path, err)
			}
			// It will be made in here.
			path = filepath.Dir(path)
		}
	}
	return nil
}

// listen reports changes until the watch is stopped.
func (w *watcher) listen() {
	buffer := make([]byte, 64<<10)
	for {
		if _, err := w.events.Read(buffer); err != nil {
			return
		}
		// A folder may have got entries before it was watched: the receiver inspects it.
		if err := w.add(); err != nil {
			return
		}
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}
