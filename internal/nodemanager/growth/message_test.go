package growth

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/message"
)

func TestTheMessageOfAFailedGrowthIsAsLongAsTheAPITakes(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{}
	setGrowthFailed(claim, errors.New(strings.Repeat("é", 1<<16)+": permission denied"), false, time.Time{})
	if got := claim.Status.Conditions[0].Message; len(got) > message.MaxCondition || !strings.HasSuffix(got, ": permission denied") {
		t.Errorf("it says %d bytes", len(got))
	}
}
