package recycling

import (
	"strings"
	"testing"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/message"
)

func TestWhatARecyclingSaysIsAsLongAsTheAPITakes(t *testing.T) {
	of := &stowagev1alpha1.NodeRecycling{}
	setEmptied(of, stowagev1alpha1.ReasonInUse, strings.Repeat("é", 1<<20)+": in use")
	if got := of.Status.Conditions[0].Message; len(got) > message.MaxCondition || !strings.HasSuffix(got, ": in use") {
		t.Errorf("it says %d bytes", len(got))
	}
}
