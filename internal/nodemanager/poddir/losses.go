package poddir

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/mount"
)

// Losses notices mounts that are gone from pods' directories and that nobody asked the
// agent to take away. It knows what each pass over a pod saw, and compares that with
// each later mount table: what the agent mounts and unmounts itself wakes nobody. Its
// zero value is usable.
type Losses struct {
	mu sync.Mutex
	// seen is what was mounted for a pod when a pass looked.
	seen map[types.UID][]string
	// looks counts the tables, and last is the paths of the last one.
	looks int
	last  map[string]struct{}
}

// Begin is called before a pass reads the mount table.
func (l *Losses) Begin() (looks int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.looks
}

// Note takes what a pass saw that began then, and says whether some of it has been
// lost since: nobody tells of that any more.
func (l *Losses) Note(began int, pod types.UID, paths []string) (lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[types.UID][]string{}
	}
	l.seen[pod] = paths
	return began != l.looks && l.lacks(paths)
}

// Forget notes that a pod's mounts may go.
func (l *Losses) Forget(pod types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.seen, pod)
}

// Look takes what is mounted now, and returns the pods that miss something.
func (l *Losses) Look(table mount.Table) []types.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looks++
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
		_, there := l.last[path]
		return !there
	})
}
