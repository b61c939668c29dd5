package sharedread

import (
	"testing"

	"github.com/stowage-dev/stowage/test/harness/specs"
)

func TestSharedRead(t *testing.T) {
	specs.Run(t, "Shared reads")
}
