package metrics

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

const (
	// usageTimeout is how long a scrape waits for usages.
	usageTimeout = 500 * time.Millisecond
	// usageLifetime is how long the last usage of a volume is served while its file system, or its
	// driver, doesn't answer. After that, the volume counts as abnormal.
	usageLifetime = 2 * time.Minute
	// driverInterval is how often a driver measures a volume at most: as often as a kubelet asks.
	driverInterval = time.Minute
)

// usages measures volumes. One that hangs keeps one goroutine, and delays no other.
type usages struct {
	statfs func(path string, into *unix.Statfs_t) error
	mu     sync.Mutex
	of     map[string]*usage
}

// usage is the usage of one mount.
type usage struct {
	// last is the last answer, and at when that call began.
	last volumes.Usage
	at   time.Time
	// called is when the last call began, and running whether it hasn't ended. done is closed at
	// its end.
	called  time.Time
	running bool
	done    chan struct{}
	// silent is since when calls end without an answer, if at all; zero if the last one had one.
	silent time.Time
}

func newUsages() *usages { return &usages{statfs: unix.Statfs, of: map[string]*usage{}} }

// measure measures the mounts, waits a while for the answers, and returns what is known by path. It
// forgets all other paths.
func (u *usages) measure(mounts []ClaimMount) map[string]usage {
	timeout := time.NewTimer(usageTimeout)
	defer timeout.Stop()
	begun, running := u.begin(mounts)
	for _, done := range running {
		select {
		case <-done:
		case <-timeout.C:
			return u.known(begun)
		}
	}
	return u.known(begun)
}

// begin begins to measure each mount that isn't being measured, and is due. It returns the usages of the
// mounts: another scrape may forget some before this one ends.
func (u *usages) begin(mounts []ClaimMount) (begun map[string]*usage, running []chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	begun, kept := map[string]*usage{}, map[string]*usage{}
	for path, of := range u.of {
		if of.running {
			kept[path] = of
		}
	}
	for _, at := range mounts {
		of := u.of[at.Path]
		if of == nil {
			of = &usage{}
		}
		kept[at.Path], begun[at.Path] = of, of
		if !of.running && (at.Measure == nil || now.Sub(of.called) >= driverInterval) {
			of.called, of.running, of.done = now, true, make(chan struct{})
			if of.silent.IsZero() {
				of.silent = now
			}
			go u.run(at, of)
		}
		if of.running {
			running = append(running, of.done)
		}
	}
	u.of = kept
	return begun, running
}

// run measures one mount. It may never return.
func (u *usages) run(at ClaimMount, of *usage) {
	measured, err := u.ask(at)
	u.mu.Lock()
	defer u.mu.Unlock()
	if err == nil {
		of.last, of.at = measured, of.called
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		of.silent = time.Time{}
	}
	of.running = false
	close(of.done)
}

// ask asks the driver that measures a volume, and else the file system. A device has none.
func (u *usages) ask(at ClaimMount) (volumes.Usage, error) {
	if at.Measure != nil {
		measured, err := at.Measure(context.Background())
		unserved := errors.Is(err, volumes.ErrNotSupported)
		if err != nil && !unserved {
			logf.Log.V(1).Info("A volume isn't measured", "path", at.Path, "error", err.Error())
		}
		if !unserved || at.IsDevice {
			return measured, err
		}
	}
	var system unix.Statfs_t
	if err := u.statfs(at.Path, &system); err != nil {
		return volumes.Usage{}, err
	}
	block := system.Frsize
	return volumes.Usage{
		Bytes: &volumes.Amount{
			Total: int64(system.Blocks) * block, Available: int64(system.Bavail) * block, Used: int64(system.Blocks-system.Bfree) * block,
		},
		Inodes: &volumes.Amount{Total: int64(system.Files), Available: int64(system.Ffree), Used: int64(system.Files - system.Ffree)},
	}, nil
}

func (u *usages) known(begun map[string]*usage) map[string]usage {
	u.mu.Lock()
	defer u.mu.Unlock()
	known := make(map[string]usage, len(begun))
	for path, of := range begun {
		known[path] = *of
	}
	return known
}

// isFresh reports whether the last usage may still be served.
func (u usage) isFresh() bool { return !u.at.IsZero() && time.Since(u.at) < usageLifetime }

// isSilent reports whether there has been no answer for long.
func (u usage) isSilent() bool { return !u.silent.IsZero() && time.Since(u.silent) >= usageLifetime }
