package podstatus

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/internal/message"
)

func TestTheMessageOfAPodIsAsLongAsTheAPITakes(t *testing.T) {
	long := errors.New(strings.Repeat("é", 1<<16) + ": permission denied")
	var volumes []Progress
	for i := range 500 {
		volumes = append(volumes, Progress{Name: fmt.Sprint(i), Err: long})
	}
	pod, _ := ConditionOf(volumes)
	if len(pod.Message) > message.MaxCondition || !strings.HasSuffix(pod.Message, ": permission denied") {
		t.Errorf("it says %d bytes", len(pod.Message))
	}
}
