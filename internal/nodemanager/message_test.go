package nodemanager

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/message"
)

func TestWhatAPodAndAClaimSayIsAsLongAsTheAPITakes(t *testing.T) {
	long := errors.New(strings.Repeat("é", 1<<16) + ": permission denied")
	var volumes []progress
	for i := range 500 {
		volumes = append(volumes, progress{name: fmt.Sprint(i), err: long})
	}
	pod, _ := conditionOf(volumes)
	claim := &corev1.PersistentVolumeClaim{}
	setGrowthFailed(claim, long, false, time.Time{})
	for _, got := range []string{pod.Message, claim.Status.Conditions[0].Message} {
		if len(got) > message.MaxCondition || !strings.HasSuffix(got, ": permission denied") {
			t.Errorf("it says %d bytes", len(got))
		}
	}
}
