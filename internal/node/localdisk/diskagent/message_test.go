package diskagent

import (
	"strings"
	"testing"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/message"
)

// Names of files are in errors, and the API server refuses what is too long.
func TestTheMessagesOfADiskAreAsLongAsTheAPITakes(t *testing.T) {
	const reason = ": no space left on device"
	disk := &stowagev1alpha1.NodeDisk{}
	setDiskCondition(disk, stowagev1alpha1.ReadyCondition, stowagev1alpha1.ReasonUnavailable, "looking at /"+strings.Repeat("é/", 1<<20)+reason)
	for _, condition := range disk.Status.Conditions {
		if len(condition.Message) > message.MaxCondition || !strings.HasSuffix(condition.Message, reason) {
			t.Errorf("%s says %d bytes", condition.Type, len(condition.Message))
		}
	}
}
