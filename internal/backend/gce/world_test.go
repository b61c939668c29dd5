package gce

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/option"
	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/operations"
	"github.com/stowage-dev/stowage/internal/backend/gce/place"
	"github.com/stowage-dev/stowage/internal/backend/gce/transport"
	"github.com/stowage-dev/stowage/internal/gcemock"
)

const (
	thisCluster  = types.UID("6f0c2f2e-aaaa-4c5e-9d1e-0123456789ab")
	otherCluster = types.UID("6f0c2f2e-bbbb-4c5e-9d1e-0123456789ab")

	project = "demo"
	region  = "europe-west3"
	zoneA   = "europe-west3-a"
	zoneB   = "europe-west3-b"
	zoneC   = "europe-west3-c"

	patience = 30 * time.Second
	quick    = 2 * time.Millisecond
)

// inTime are limits for tests, in which nothing takes long unless it is stuck.
var inTime = cloud.Limits{Call: 20 * time.Second, Operation: 20 * time.Second, Poll: quick, Page: 500}

// world is a cloud in this process, and a manager's kind of backend in it.
type world struct {
	*testing.T
	// compute is a client that sees what is there.
	compute *compute.Service
	options gcemock.Options
	url     string
	keys    *keyring
	kind    *Kind
	spec    stowagev1alpha1.GCEBackend
	// replicated has all disks replicated, as a class can.
	replicated bool

	mu   sync.RWMutex
	mock *gcemock.Server
	// plan, where it is set, says what becomes of each call.
	plan func(*http.Request) fate
}

// fate is what becomes of a call.
type fate int

const (
	served fate = iota
	// dropped calls don't arrive.
	dropped
	// unanswered calls take effect, and their answers are lost.
	unanswered
	// outdated calls are answered as if there were nothing.
	outdated
	// missing resources are answered as if they weren't there.
	missing
	// unfinished lists are answered with a page that has nothing, and another to come.
	unfinished
)

func newWorld(t *testing.T, change ...func(*gcemock.Options)) *world {
	t.Helper()
	w := &world{T: t, keys: &keyring{}, options: gcemock.Options{
		Folder: t.TempDir(), Projects: []string{project, "other"}, Zones: []string{zoneA, zoneB, zoneC}, Latency: quick,
	}}
	for _, one := range change {
		one(&w.options)
	}
	w.start()
	server := httptest.NewServer(w)
	w.url = server.URL + transport.BasePath
	t.Cleanup(func() { server.CloseClientConnections(); w.stop(); server.Close() })
	var err error
	w.compute, err = compute.NewService(t.Context(), option.WithEndpoint(w.url), option.WithHTTPClient(&http.Client{Transport: withToken(w.options.Token)}))
	w.must(err)
	w.spec = stowagev1alpha1.GCEBackend{Project: project, Zones: []string{zoneA, zoneB}, Endpoint: w.url}
	w.kind = w.newKind(thisCluster)
	for zone, names := range map[string][]string{zoneA: {"node-1", "node-2"}, zoneB: {"node-b"}, zoneC: {"node-c"}} {
		for _, name := range names {
			w.must(w.mock.EnsureInstance(project, zone, name, "e2-standard-2"))
		}
	}
	return w
}

// withToken signs each call with a token.
type withToken string

func (w withToken) RoundTrip(request *http.Request) (*http.Response, error) {
	request.Header.Set("Authorization", "Bearer "+string(w))
	return http.DefaultTransport.RoundTrip(request)
}

// ServeHTTP serves the cloud, or cuts the connection while there is none.
func (w *world) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	w.mu.RLock()
	mock, plan := w.mock, w.plan
	w.mu.RUnlock()
	becomes := served
	if plan != nil {
		becomes = plan(request)
	}
	switch {
	case mock == nil || becomes == dropped:
		panic(http.ErrAbortHandler)
	case becomes == unanswered:
		mock.ServeHTTP(httptest.NewRecorder(), request)
		panic(http.ErrAbortHandler)
	case becomes == outdated:
		answer.Header().Set("Content-Type", "application/json")
		_, _ = answer.Write([]byte("{}"))
		return
	case becomes == missing:
		answer.Header().Set("Content-Type", "application/json")
		answer.WriteHeader(http.StatusNotFound)
		_, _ = answer.Write([]byte(`{"error": {"code": 404, "errors": [{"reason": "notFound"}]}}`))
		return
	case becomes == unfinished:
		answer.Header().Set("Content-Type", "application/json")
		_, _ = answer.Write([]byte(`{"nextPageToken": "Cgo"}`))
		return
	}
	mock.ServeHTTP(answer, request)
}

// plans says what becomes of calls from now on; nil: they are served.
func (w *world) plans(plan func(*http.Request) fate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plan = plan
}

func (w *world) start() {
	w.Helper()
	mock, err := gcemock.New(context.Background(), w.options)
	w.must(err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mock = mock
}

func (w *world) stop() {
	w.Helper()
	w.mu.Lock()
	mock := w.mock
	w.mock = nil
	w.mu.Unlock()
	if mock != nil {
		w.must(mock.Close())
	}
}

// newKind is that of a manager that has just started.
func (w *world) newKind(cluster types.UID) *Kind {
	kind := NewKind(cluster, w.keys)
	kind.clients.Limits = inTime
	return kind
}

// open makes the world's backend.
func (w *world) open(change ...func(*stowagev1alpha1.GCEBackend)) *gceBackend {
	w.Helper()
	return w.openAs(w.kind, "cloud", change...)
}

func (w *world) openAs(kind *Kind, name string, change ...func(*stowagev1alpha1.GCEBackend)) *gceBackend {
	w.Helper()
	spec := w.spec
	for _, one := range change {
		one(&spec)
	}
	object := &stowagev1alpha1.StorageBackend{Spec: stowagev1alpha1.StorageBackendSpec{GCE: &spec}}
	object.Name = name
	opened, err := kind.Open(object)
	w.must(err)
	made, isGCE := opened.(*gceBackend)
	if !isGCE {
		w.Fatalf("opening made a %T", opened)
	}
	made.spec.Disks.Replicated = w.replicated
	return made
}

// inProgressAtOnce makes callers get InProgress at once.
func (w *world) inProgressAtOnce() {
	w.kind.clients.Limits.Operation = quick
}

func (w *world) inject(faults ...gcemock.Fault) {
	w.Helper()
	for _, fault := range faults {
		w.must(w.mock.Inject(fault))
	}
}

// removeFaults takes all faults away, as an administrator does.
func (w *world) removeFaults() {
	w.Helper()
	w.administer(http.MethodDelete, "faults")
}

// administer makes a call that only the mock has.
func (w *world) administer(verb, what string) []byte {
	w.Helper()
	url := strings.TrimSuffix(w.url, transport.BasePath) + "/_mock/" + what
	request, err := http.NewRequestWithContext(w.Context(), verb, url, http.NoBody)
	w.must(err)
	request.Header.Set("Authorization", "Bearer "+w.options.Token)
	answer, err := http.DefaultClient.Do(request)
	w.must(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	w.must(err)
	if answer.StatusCode != http.StatusOK {
		w.Fatalf("%s %s: %s", verb, what, answer.Status)
	}
	return text
}

// disksOf are the disks of a name, in all zones and in their region.
func (w *world) disksOf(id string) (found []*compute.Disk) {
	w.Helper()
	all, err := w.compute.RegionDisks.List(project, region).Do()
	w.must(err)
	for _, zone := range w.options.Zones {
		list, err := w.compute.Disks.List(project, zone).Do()
		if err != nil && w.mock.IsSilent(zone) {
			continue
		}
		w.must(err)
		all.Items = append(all.Items, list.Items...)
	}
	return slices.DeleteFunc(all.Items, func(one *compute.Disk) bool { return one.Name != id })
}

func (w *world) has(id string) bool { return len(w.disksOf(id)) > 0 }

// mustHaveOne returns the one disk of a name.
func (w *world) mustHaveOne(id string) *compute.Disk {
	w.Helper()
	found := w.disksOf(id)
	if len(found) != 1 {
		w.Fatalf("there are %d disks %s", len(found), id)
	}
	return found[0]
}

// put makes a disk that isn't Stowage's.
func (w *world) put(zone string, foreign *compute.Disk) {
	w.Helper()
	operation, err := w.compute.Disks.Insert(project, zone, foreign).Do()
	w.ended(zone, operation, err)
}

func (w *world) ended(zone string, operation *compute.Operation, err error) {
	w.Helper()
	for err == nil && operation.Status != "DONE" {
		operation, err = w.compute.ZoneOperations.Wait(project, zone, operation.Name).Do()
	}
	w.must(err)
	if operation.Error != nil {
		w.Fatalf("an operation ended in error: %v", operation.Error.Errors[0].Message)
	}
}

// operations counts those of a type that were begun in a zone, or in none.
func (w *world) operations(zone, operationType string) int {
	w.Helper()
	return w.operationsIn(place.Zone(zone), operationType)
}

func (w *world) operationsIn(at place.Place, operationType string) int {
	w.Helper()
	count := 0
	w.must(operations.Scope{Compute: w.compute, Project: project, Place: at}.List(w.Context(), "", func(page *compute.OperationList) error {
		for _, one := range page.Items {
			if one.OperationType == operationType {
				count++
			}
		}
		return nil
	}))
	return count
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// mustBe checks an error's kind, and that its text has certain words.
func (w *world) mustBe(err error, kind backend.ErrorKind, words ...string) {
	w.Helper()
	if err == nil || backend.KindOf(err) != kind {
		w.Fatalf("got the error %v of kind %q, want %q", err, backend.KindOf(err), kind)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			w.Errorf("the error says %q, and nothing of %q", err, word)
		}
	}
}

// untilFinal repeats a call until it doesn't say any more that it goes on, or has to wait.
func (w *world) untilFinal(call func() error) error {
	w.Helper()
	end := time.Now().Add(patience)
	tick := time.NewTicker(quick)
	defer tick.Stop()
	for {
		err := call()
		if !errors.Is(err, backend.InProgress) && !errors.Is(err, backend.NotReady) {
			return err
		}
		if time.Now().After(end) {
			w.Fatalf("after %s: %v", patience, err)
		}
		<-tick.C
	}
}

// provision repeats the call until its outcome is final.
func (w *world) provision(on *gceBackend, request backend.Request) (made *backend.Volume, err error) {
	w.Helper()
	err = w.untilFinal(func() (err error) { made, err = on.Provision(w.Context(), request); return err })
	return made, err
}

func (w *world) mustProvision(on *gceBackend, request backend.Request) *backend.Volume {
	w.Helper()
	made, err := w.provision(on, request)
	w.must(err)
	return made
}

// keyring is Secrets in memory.
type keyring struct {
	mu      sync.Mutex
	key     []byte
	version string
	err     error
	reads   int
}

func (k *keyring) Key(context.Context, string) ([]byte, string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reads++
	return k.key, k.version, k.err
}

func (k *keyring) set(key []byte, version string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.key, k.version, k.err = key, version, err
}
