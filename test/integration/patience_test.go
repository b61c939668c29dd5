package integration_test

import (
	"context"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("Storage that is away", Ordered, func() {
	DescribeTable("is not asked again and again",
		func(ctx SpecContext, storage *awayStorage) {
			storage.Backend = fake.New()
			startManager(awayKind{storage})
			DeferCleanup(removeEverything)
			DeferCleanup(func() { storage.back.Store(true) })
			claim := Claim(InClass("disks"))
			create(ctx, LocalBackend("disks"), claim)
			eventuallyWaits(ctx, claim, "ProvisioningFailed")
			before := storage.calls.Load()

			Consistently(storage.calls.Load).WithTimeout(4 * time.Second).Should(BeNumerically("<=", before+1))
		},
		Entry("though it says so in other words each time", &awayStorage{}),
		Entry("though it takes its time to say so", &awayStorage{takes: 300 * time.Millisecond}),
	)
})

// awayStorage makes nothing until it is back, and counts the calls.
type awayStorage struct {
	*fake.Backend
	takes time.Duration
	calls atomic.Int32
	back  atomic.Bool
}

// awayKind serves the backends of type local with storage that is away.
type awayKind struct{ storage *awayStorage }

func (awayKind) Type() stowagev1alpha1.BackendType { return stowagev1alpha1.LocalType }

func (k awayKind) Open(*stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	return k.storage, nil
}

func (s *awayStorage) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	if s.back.Load() {
		return s.Backend.Provision(ctx, request)
	}
	call := s.calls.Add(1)
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
	}
	return nil, backend.Unavailable.Errorf("connection %d was refused", call)
}
