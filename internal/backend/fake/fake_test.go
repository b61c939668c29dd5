package fake_test

import (
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/fake"
)

func TestTheFakeKeepsTheContract(t *testing.T) {
	backendtest.Contract(t, func(*testing.T) (backend.Backend, func(string) bool) {
		storage := fake.New()
		return storage, storage.Has
	})
}
