package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
)

const (
	// usageTimeout is how long a scrape waits for file systems.
	usageTimeout = 500 * time.Millisecond
	// usageLifetime is how long the last usage of a file system is served while the file system
	// hangs. After that, its volumes count as abnormal.
	usageLifetime = 2 * time.Minute
)

// usages measures file systems. One that hangs keeps one goroutine, and delays no other.
type usages struct {
	statfs func(path string, into *unix.Statfs_t) error
	mu     sync.Mutex
	of     map[string]*usage
}

// usage is the usage of one mount.
type usage struct {
	// last is the last result of statfs, and at when that call began.
	last unix.Statfs_t
	at   time.Time
	// began is when the running statfs began, zero if none runs; done is closed at its end.
	began time.Time
	done  chan struct{}
}

func newUsages() *usages { return &usages{statfs: unix.Statfs, of: map[string]*usage{}} }

// measure measures the file systems at paths, waits a while for them, and returns what is
// known. It forgets all other paths.
func (u *usages) measure(paths []string) map[string]usage {
	timeout := time.NewTimer(usageTimeout)
	defer timeout.Stop()
	for _, done := range u.begin(paths) {
		select {
		case <-done:
		case <-timeout.C:
			return u.known(paths)
		}
	}
	return u.known(paths)
}

// begin begins to measure each path that isn't being measured.
func (u *usages) begin(paths []string) []chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	kept, running := map[string]*usage{}, make([]chan struct{}, 0, len(paths))
	for path, of := range u.of {
		if !of.began.IsZero() {
			kept[path] = of
		}
	}
	for _, path := range paths {
		of := u.of[path]
		if of == nil {
			of = &usage{}
		}
		kept[path] = of
		if of.began.IsZero() {
			of.began, of.done = now, make(chan struct{})
			go u.run(path, of)
		}
		running = append(running, of.done)
	}
	u.of = kept
	return running
}

// run measures one file system. It may never return.
func (u *usages) run(path string, of *usage) {
	var measured unix.Statfs_t
	err := u.statfs(path, &measured)
	u.mu.Lock()
	defer u.mu.Unlock()
	if err == nil {
		of.last, of.at = measured, of.began
	}
	of.began = time.Time{}
	close(of.done)
}

func (u *usages) known(paths []string) map[string]usage {
	u.mu.Lock()
	defer u.mu.Unlock()
	known := make(map[string]usage, len(paths))
	for _, path := range paths {
		known[path] = *u.of[path]
	}
	return known
}

// isFresh reports whether the last usage may still be served.
func (u usage) isFresh() bool { return !u.at.IsZero() && time.Since(u.at) < usageLifetime }

// isSilent reports whether the file system hasn't answered for long.
func (u usage) isSilent() bool { return !u.began.IsZero() && time.Since(u.began) >= usageLifetime }

// claimMetrics are the metrics of claims' volumes, by the names of the kubelet's metrics. Where
// there is a kubelet, it serves them.
type claimMetrics struct {
	capacity, available, used, inodes, inodesFree, inodesUsed, abnormal *prometheus.Desc
}

func newClaimMetrics() claimMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("kubelet_volume_stats_"+name, help, []string{"namespace", "persistentvolumeclaim"}, nil)
	}
	return claimMetrics{
		capacity:   desc("capacity_bytes", "Size of the file system that a claim's volume lies on."),
		available:  desc("available_bytes", "What of it a pod can still write."),
		used:       desc("used_bytes", "What of it is taken."),
		inodes:     desc("inodes", "How many files and directories it can hold."),
		inodesFree: desc("inodes_free", "How many it can hold beside those that it holds."),
		inodesUsed: desc("inodes_used", "How many it holds."),
		abnormal:   desc("health_status_abnormal", "1 where something is wrong with the mounted volume, or its server doesn't answer, else 0."),
	}
}

// collect emits the metrics of one claim.
func (c claimMetrics) collect(of usage, abnormal bool, emit func(*prometheus.Desc, float64)) {
	health := 0.0
	if abnormal || of.isSilent() {
		health = 1
	}
	emit(c.abnormal, health)
	if !of.isFresh() {
		return
	}
	last, block := of.last, float64(of.last.Frsize)
	emit(c.capacity, float64(last.Blocks)*block)
	emit(c.available, float64(last.Bavail)*block)
	emit(c.used, float64(last.Blocks-last.Bfree)*block)
	emit(c.inodes, float64(last.Files))
	emit(c.inodesFree, float64(last.Ffree))
	emit(c.inodesUsed, float64(last.Files-last.Ffree))
}
