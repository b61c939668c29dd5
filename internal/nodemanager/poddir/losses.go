package poddir

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/mount"
)

// Losses finds mounts in pods' directories that something else than the agent unmounted. It
// compares what each pass over a pod read with each later mount table: the agent's own mounts
// and unmounts wake no pod. Its zero value is usable.
type Losses struct {
	mu sync.Mutex
	// seen is what was mounted for a pod in its last pass.
	seen map[types.UID][]string
	// comparisons counts the tables, and last is the paths of the last one.
	comparisons int
	last        map[string]struct{}
}

// Begin is called before a pass reads the mount table. It returns the number of comparisons so
// far.
func (l *Losses) Begin() (comparisons int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.comparisons
}

// Record takes what a pass read that began at a number of comparisons. It reports whether some
// of it was lost since: no later comparison reports that loss.
func (l *Losses) Record(began int, pod types.UID, paths []string) (lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[types.UID][]string{}
	}
	l.seen[pod] = paths
	return began != l.comparisons && l.lacks(paths)
}

// Forget drops a pod whose volumes are being unmounted.
func (l *Losses) Forget(pod types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.seen, pod)
}

// Compare takes what is mounted now, and returns the pods that lost a mount.
func (l *Losses) Compare(table mount.Table) []types.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.comparisons++
	l.last = make(map[string]struct{}, len(table))
	for _, point := range table {
		l.last[point.Path] = struct{}{}
	}
	var pods []types.UID
	for pod, paths := range l.seen {
		if l.lacks(paths) {
			pods = append(pods, pod)
		}
	}
	return pods
}

func (l *Losses) lacks(paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool {
		_, mounted := l.last[path]
		return !mounted
	})
}
