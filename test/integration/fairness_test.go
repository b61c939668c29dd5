package integration_test

import (
	"context"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("Storage that is slow", func() {
	const (
		crowd, few = 60, 6
		atOnce     = 4
	)

	DescribeTable("gives each of k namespaces that wait a k-th of the turns", func(ctx SpecContext, storage *slowStorage) {
		storage.Backend, storage.seen = fake.New(), map[string]bool{}
		startManager(slowKind{storage})
		DeferCleanup(removeEverything)
		DeferCleanup(storage.hurry)
		create(ctx, LocalBackend("disks", func(object *stowagev1alpha1.StorageBackend) { object.Spec.MaxConcurrentOperations = atOnce }))
		namespaces := []string{Namespace, "team-b", "team-c"}
		inAnyOrder(crowd, func(i int) { create(ctx, Claim(ClaimNamed(name("crowd", i)), InClass("disks"))) })
		Eventually(storage.turnsOf).WithArguments(Namespace).WithTimeout(soon).Should(BeNumerically(">", 2*atOnce))

		for _, namespace := range namespaces[1:] {
			ensureNamespace(ctx, namespace)
			inAnyOrder(few, func(i int) { create(ctx, Claim(ClaimNamed(name("few", i)), in(namespace), InClass("disks"))) })
		}
		for _, namespace := range namespaces[1:] {
			Eventually(storage.turnsOf).WithArguments(namespace).WithTimeout(3 * soon).Should(Equal(few))
		}

		// The crowd had turns before the others came for their first: those that had begun,
		// and those that were granted.
		Expect(storage.turnsSince(Namespace, namespaces[1:])).To(BeNumerically("<=", few+2*atOnce))
	},
		Entry("where each call takes its time", &slowStorage{takes: 100 * time.Millisecond}),
		Entry("where a call begins what goes on for a while", &slowStorage{takes: 100 * time.Millisecond, begins: true}),
	)
})

// slowStorage takes its time for each volume, and notes for which namespaces it was called
// first, in order.
type slowStorage struct {
	*fake.Backend
	takes time.Duration
	// begins says that the first call for a volume only begins to make it.
	begins bool

	mu      sync.Mutex
	seen    map[string]bool
	turns   []string
	hurries bool
}

// slowKind serves the backends of type local with storage that is slow.
type slowKind struct{ storage *slowStorage }

func (slowKind) Type() stowagev1alpha1.BackendType { return stowagev1alpha1.LocalType }

func (k slowKind) Open(*stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	return k.storage, nil
}

func (s *slowStorage) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	isFirst, waits := s.note(request)
	if waits {
		select {
		case <-time.After(s.takes):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if s.begins && isFirst && waits {
		return nil, backend.InProgress.Errorf("the storage makes volume %s", request.ID)
	}
	return s.Backend.Provision(ctx, request)
}

func (s *slowStorage) note(request backend.Request) (isFirst, waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	isFirst = !s.seen[request.ID]
	if isFirst {
		s.seen[request.ID] = true
		s.turns = append(s.turns, request.Claim.Namespace)
	}
	return isFirst, !s.hurries
}

// hurry takes no more time.
func (s *slowStorage) hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hurries = true
}

// turnsOf counts the volumes of a namespace that the storage was called for.
func (s *slowStorage) turnsOf(namespace string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for _, turn := range s.turns {
		if turn == namespace {
			count++
		}
	}
	return count
}

// turnsSince counts those of a namespace between the first and the last of others.
func (s *slowStorage) turnsSince(namespace string, others []string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, counted, is := 0, 0, map[string]bool{}
	for _, other := range others {
		is[other] = true
	}
	begun := false
	for _, turn := range s.turns {
		switch {
		case is[turn]:
			begun, counted = true, since
		case begun && turn == namespace:
			since++
		}
	}
	return counted
}

func in(namespace string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) { claim.Namespace = namespace }
}

func ensureNamespace(ctx context.Context, name string) {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(client.IgnoreAlreadyExists(users.Create(ctx, namespace))).To(Succeed())
}
