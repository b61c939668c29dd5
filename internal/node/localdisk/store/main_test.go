package store

import (
	"testing"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

func TestMain(m *testing.M) { mounttest.Main(m) }
