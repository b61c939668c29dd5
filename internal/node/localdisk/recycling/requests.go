package recycling

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// approvalRequest is a request to empty the directory of one object. Its id is in
// status.asking, and in spec.approved once the manager approves.
type approvalRequest struct {
	object types.UID
	id     string
	at     time.Time
}

// requests are approval requests of this process, by the names of objects. The requests of an
// earlier process aren't known: their age isn't, either. Its zero value is usable.
type requests struct {
	mu sync.Mutex
	of map[string]approvalRequest
}

// find returns the request of an object, if there is one. A deleted object may have had the
// same name.
func (r *requests) find(object *stowagev1alpha1.NodeRecycling) (request approvalRequest, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	request = r.of[object.Name]
	return request, request.object == object.UID
}

func (r *requests) set(name string, request approvalRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[string]approvalRequest{}
	}
	r.of[name] = request
}

func (r *requests) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, name)
}
