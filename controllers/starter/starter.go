// Package starter adds reconcilers to a running manager, once the API server serves their kinds. Clusters without
// these CRDs work as before, and the CRDs may come at any time.
package starter

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lookInterval is how often the API server is asked whether it serves an API by now.
const lookInterval = 30 * time.Second

// API is what reconcilers need of an API server.
type API struct {
	// Of says what the reconcilers serve, such as snapshots.
	Of string
	// Version is the group and version, such as snapshot.storage.k8s.io/v1.
	Version string
	// Lists are of the kinds that are read.
	Lists []client.ObjectList
}

// Starter adds reconcilers to a running manager, once the API server serves their API.
type Starter struct {
	live client.Reader
	api  API
	add  func() error
	// because is why the kinds are not served; "" once they are, and nil before the first answer.
	because atomic.Pointer[string]
}

// New makes a starter. Add adds the reconcilers to the manager.
func New(live client.Reader, api API, add func() error) *Starter {
	return &Starter{live: live, api: api, add: add}
}

// Missing returns why the kinds are not served yet; "" if they are. As long as no look had an answer, known is false.
func (s *Starter) Missing() (why string, known bool) {
	if because := s.because.Load(); because != nil {
		return *because, true
	}
	return "", false
}

// SetupWithManager adds the starter itself.
func (s *Starter) SetupWithManager(mgr ctrl.Manager) error { return mgr.Add(s) }

// Start implements manager.Runnable. It is called on the leader.
func (s *Starter) Start(ctx context.Context) error {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	said := ""
	for {
		why, err := s.missing(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && why == "":
			ctrl.Log.Info("serving " + s.api.Of + ": the API server has " + s.api.Version)
			s.because.Store(new(""))
			return s.add()
		case err != nil:
			why = err.Error()
		default:
			s.because.Store(&why)
		}
		if why != said {
			ctrl.Log.Info("not serving "+s.api.Of+" yet", "because", why, "lookingEvery", lookInterval.String())
			said = why
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// missing returns why the kinds can't be read yet; "" if they can. An informer that can't read them would end the
// manager.
func (s *Starter) missing(ctx context.Context) (why string, err error) {
	for _, list := range s.api.Lists {
		err = s.live.List(ctx, list, client.Limit(1))
		switch {
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
			return "the CRDs of " + s.api.Version + " are not installed", nil
		case err != nil:
			return "", fmt.Errorf("reading a %T: %w", list, err)
		}
	}
	return "", nil
}
