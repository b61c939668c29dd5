package audit

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
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

// lister lists what backends hold, and finds the differences to what the cluster records.
type lister struct {
	client client.Reader
	live   client.Reader
	clock  clock.PassiveClock
	passes auditPasses
}

// readPage reads one more page of what a backend holds. After an error the same page is read
// again.
func (r *lister) readPage(ctx context.Context, object *stowagev1alpha1.StorageBackend, opened backend.Backend) (*auditPass, error) {
	known, err := readRecords(ctx, r.client, object)
	if err != nil {
		return nil, err
	}
	pass := r.passes.unfinished(object, r.clock.Now())
	if pass == nil {
		pass = &auditPass{uid: object.UID, made: known.made, held: map[string]bool{}}
	}
	bounded, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	page, next, err := backend.ListAfter(bounded, opened, pass.next)
	if err != nil {
		return nil, fmt.Errorf("listing what StorageBackend %s holds: %w", object.Name, err)
	}
	for _, volume := range page {
		pass.held[volume.ID] = true
		if !known.hasRecord(volume) {
			pass.unknown = append(pass.unknown, volume)
		}
	}
	pass.next, pass.read = next, r.clock.Now()
	r.passes.keep(object, pass)
	return pass, nil
}

// compare finds orphans and lost volumes.
func (r *lister) compare(ctx context.Context, object *stowagev1alpha1.StorageBackend, pass *auditPass) (findings, error) {
	found := findings{held: pass.held, retained: int32(len(pass.unknown))}
	lost := notHeld(pass.made, pass.held)
	if len(lost) == 0 && allRetained(pass.unknown) {
		// The cache only saves live reads: it has records of all held volumes.
		return found, nil
	}
	now, err := readRecords(ctx, r.live, object)
	if err != nil {
		return findings{}, err
	}
	found.orphans, found.retained, found.live = now.orphans(pass.unknown), now.retained(pass.unknown), now.live
	found.lost = both(lost, notHeld(now.made, pass.held))
	return found, nil
}

// end drops the unfinished audit of a backend.
func (r *lister) end(object *stowagev1alpha1.StorageBackend) {
	r.passes.forget(client.ObjectKeyFromObject(object))
}

// untilAudit returns the time until the next audit. Orphans that are being removed make it due
// at once, also after a crash. A clock that was ahead delays nothing for longer than the
// interval.
func untilAudit(object *stowagev1alpha1.StorageBackend, now time.Time) time.Duration {
	last := object.Status.Audit
	if last == nil || len(removing(last.Orphans)) > 0 {
		return 0
	}
	interval := object.Spec.Audit.Interval.Duration
	if interval <= 0 {
		interval = defaultAuditInterval
	}
	return min(interval, last.Time.Add(interval).Sub(now))
}

// defaultAuditInterval is the default in the API, for objects older than it.
const defaultAuditInterval = time.Hour

// auditTimeout is how long a backend has to list one page.
const auditTimeout = 5 * time.Minute
