package audit

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// passKept is how long an interrupted audit can resume: its earlier pages are no older then.
const passKept = time.Hour

// auditPass is an audit of which some pages were read. After a restart it begins again.
//
// The order excludes changes during the audit. A lost volume existed before the first page was
// requested: a stale cache only shortens that time. An orphan was held before the cluster is
// read, live, after the last page. It was also unknown to the cache when its page was
// requested. So a volume that is removed while further pages are read is not an orphan.
// Nothing is decided before the last page.
type auditPass struct {
	uid types.UID
	// made are the PersistentVolumes that existed before the first page.
	made []madeVolume
	// held are the ids on the pages so far, unknown those that the cache did not know.
	held    map[string]bool
	unknown []backend.Held
	// next is the id after which the next page begins: "" after the last.
	next string
	read time.Time
}

// auditPasses are the unfinished audits, by backend. The zero value is usable.
type auditPasses struct {
	mu     sync.Mutex
	passes map[types.NamespacedName]*auditPass
}

// unfinished returns the unfinished audit of a backend, or nil.
func (p *auditPasses) unfinished(object *stowagev1alpha1.StorageBackend, now time.Time) *auditPass {
	p.mu.Lock()
	defer p.mu.Unlock()
	pass := p.passes[client.ObjectKeyFromObject(object)]
	if pass == nil || pass.uid != object.UID || now.Sub(pass.read).Abs() > passKept {
		return nil
	}
	return pass
}

func (p *auditPasses) keep(object *stowagev1alpha1.StorageBackend, pass *auditPass) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.passes == nil {
		p.passes = map[types.NamespacedName]*auditPass{}
	}
	p.passes[client.ObjectKeyFromObject(object)] = pass
}

func (p *auditPasses) forget(name types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.passes, name)
}
