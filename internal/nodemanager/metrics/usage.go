package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
)

const (
	// usagePatience is how long whoever asks for metrics waits for file systems.
	usagePatience = 500 * time.Millisecond
	// usageLasts is for how long what a file system said last is told, while it doesn't
	// answer. After that, its volumes count as abnormal.
	usageLasts = 2 * time.Minute
)

// usages asks file systems what is used of them. One that hangs keeps one goroutine,
// and nobody waits for it.
type usages struct {
	statfs func(path string, into *unix.Statfs_t) error
	mu     sync.Mutex
	of     map[string]*usage
}

// usage is what is known of one mount.
type usage struct {
	// said is what its file system said last, and at when that was asked for.
	said unix.Statfs_t
	at   time.Time
	// asked is since when it is being asked, if it is: answered is closed after that.
	asked    time.Time
	answered chan struct{}
}

func newUsages() *usages { return &usages{statfs: unix.Statfs, of: map[string]*usage{}} }

// look asks the file systems at paths, and waits a while for those that answer. It
// forgets all others.
func (u *usages) look(paths []string) map[string]usage {
	patience := time.NewTimer(usagePatience)
	defer patience.Stop()
	for _, answered := range u.ask(paths) {
		select {
		case <-answered:
		case <-patience.C:
			return u.known(paths)
		}
	}
	return u.known(paths)
}

// ask begins to ask each of them that isn't being asked.
func (u *usages) ask(paths []string) []chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	kept, answers := map[string]*usage{}, make([]chan struct{}, 0, len(paths))
	for path, of := range u.of {
		if !of.asked.IsZero() {
			kept[path] = of
		}
	}
	for _, path := range paths {
		of := u.of[path]
		if of == nil {
			of = &usage{}
		}
		kept[path] = of
		if of.asked.IsZero() {
			of.asked, of.answered = now, make(chan struct{})
			go u.measure(path, of)
		}
		answers = append(answers, of.answered)
	}
	u.of = kept
	return answers
}

// measure asks one file system. It may never return.
func (u *usages) measure(path string, of *usage) {
	var said unix.Statfs_t
	err := u.statfs(path, &said)
	u.mu.Lock()
	defer u.mu.Unlock()
	if err == nil {
		of.said, of.at = said, of.asked
	}
	of.asked = time.Time{}
	close(of.answered)
}

// known is what is known of paths.
func (u *usages) known(paths []string) map[string]usage {
	u.mu.Lock()
	defer u.mu.Unlock()
	known := make(map[string]usage, len(paths))
	for _, path := range paths {
		known[path] = *u.of[path]
	}
	return known
}

// isFresh says whether what it said may still be told.
func (u usage) isFresh() bool { return !u.at.IsZero() && time.Since(u.at) < usageLasts }

// isSilent says whether its file system hasn't answered for long.
func (u usage) isSilent() bool { return !u.asked.IsZero() && time.Since(u.asked) >= usageLasts }

// claimMetrics are the metrics of claims' volumes, by the names that the kubelet has for
// them: where there is a kubelet, it asks for the numbers, and serves them.
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

// collectClaims tells what is used of the volumes of claims that are mounted now.
func (n *Metrics) collectClaims(metrics chan<- prometheus.Metric, sums Pod) {
	table, err := n.mounter.Table()
	if err != nil {
		metrics <- prometheus.NewInvalidMetric(n.claims.capacity, err)
		return
	}
	mounted := mountedPaths(table)
	var paths []string
	for claim, volume := range sums.Claims {
		// What isn't mounted any more would tell of the agent's own disk.
		if mounted[volume.Path] {
			paths = append(paths, volume.Path)
		} else {
			delete(sums.Claims, claim)
		}
	}
	known := n.usages.look(paths)
	for claim, volume := range sums.Claims {
		n.claims.tell(known[volume.Path], volume.Ails, func(desc *prometheus.Desc, value float64) {
			metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, claim.Namespace, claim.Name)
		})
	}
}

func mountedPaths(table mount.Table) map[string]bool {
	paths := make(map[string]bool, len(table))
	for _, point := range table {
		paths[point.Path] = true
	}
	return paths
}

// tell tells one claim's numbers.
func (c claimMetrics) tell(of usage, ails bool, tell func(*prometheus.Desc, float64)) {
	abnormal := 0.0
	if ails || of.isSilent() {
		abnormal = 1
	}
	tell(c.abnormal, abnormal)
	if !of.isFresh() {
		return
	}
	said, block := of.said, float64(of.said.Frsize)
	tell(c.capacity, float64(said.Blocks)*block)
	tell(c.available, float64(said.Bavail)*block)
	tell(c.used, float64(said.Blocks-said.Bfree)*block)
	tell(c.inodes, float64(said.Files))
	tell(c.inodesFree, float64(said.Ffree))
	tell(c.inodesUsed, float64(said.Files-said.Ffree))
}
