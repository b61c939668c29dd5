package attach_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/hack/uml"
)

// watchEvery is how often the watcher looks.
const watchEvery = 50 * time.Millisecond

// watcher records which guests have which disks open to write, by the machine's kernel:
// whatever the cloud, the manager and the nodes report.
type watcher struct {
	// images is the folder of the disks' files.
	images string

	mutex sync.Mutex
	// inspections is how often it looked, and most is how many disks it saw at once.
	inspections, most int
	// shared are the disks' files that two guests may write.
	shared []string
	// twice is what it must never see.
	twice []string
}

// watch looks until the context ends.
func watch(ctx context.Context, images string) *watcher {
	w := &watcher{images: images}
	go func() {
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.inspect()
			}
		}
	}()
	return w
}

// inspect looks once. All processes of a guest are one group.
func (w *watcher) inspect() {
	writers := map[string][]int{}
	programs, _ := filepath.Glob("/proc/[0-9]*/exe") // the pattern is well-formed
	for _, program := range programs {
		path, err := os.Readlink(program)
		if err != nil || filepath.Base(path) != uml.Kernel {
			continue
		}
		process := filepath.Dir(program)
		group, err := groupOf(process)
		if err != nil {
			continue // it has ended since the listing
		}
		for _, image := range w.writtenBy(process) {
			if !slices.Contains(writers[image], group) {
				writers[image] = append(writers[image], group)
			}
		}
	}
	w.note(writers)
}

func groupOf(process string) (int, error) {
	id, err := strconv.Atoi(filepath.Base(process))
	if err != nil {
		return 0, err
	}
	return unix.Getpgid(id)
}

// writtenBy is the disks that a process has open to write.
func (w *watcher) writtenBy(process string) []string {
	var images []string
	descriptors, _ := filepath.Glob(filepath.Join(process, "fd", "*")) // the pattern is well-formed
	for _, descriptor := range descriptors {
		image, err := os.Readlink(descriptor)
		if err == nil && filepath.Dir(image) == w.images && isForWriting(descriptor) {
			images = append(images, image)
		}
	}
	return images
}

// isForWriting says how a descriptor was opened; one that is closed by now is none.
func isForWriting(descriptor string) bool {
	info, err := os.ReadFile(strings.Replace(descriptor, "/fd/", "/fdinfo/", 1))
	if err != nil {
		return false
	}
	var position, flags int
	if _, err := fmt.Sscanf(string(info), "pos:%d\nflags:%o", &position, &flags); err != nil {
		return false
	}
	return flags&unix.O_ACCMODE != unix.O_RDONLY
}

func (w *watcher) note(writers map[string][]int) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.inspections++
	w.most = max(w.most, len(writers))
	for image, groups := range writers {
		if len(groups) > 1 && !slices.Contains(w.shared, filepath.Base(image)) {
			w.twice = append(w.twice, fmt.Sprintf("%s: %s is open to write in process groups %v",
				time.Now().Format(time.TimeOnly), filepath.Base(image), groups))
		}
	}
}

// share excepts a disk's file: several guests may write it.
func (w *watcher) share(image string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.shared = append(w.shared, image)
}

// verdict is an error if any disk ever had two writers, or if the watcher is blind.
func (w *watcher) verdict() error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	switch {
	case len(w.twice) > 0:
		return fmt.Errorf("two guests could write to one disk: %s", strings.Join(w.twice, "; "))
	case w.most == 0:
		return fmt.Errorf("in %d looks no guest had any disk: the watcher sees nothing", w.inspections)
	}
	return nil
}
