package volumeagent

import (
	"errors"
	"strings"
	"testing"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// Names of a tenant's files are in errors, and the API server refuses what is too long.
func TestTheMessagesOfAVolumeAreAsLongAsTheAPITakes(t *testing.T) {
	const reason = ": no space left on device"
	err := errors.New("copying /" + strings.Repeat("é/", 1<<20) + reason)
	volume := &stowagev1alpha1.NodeVolume{}
	setProblem(volume, stowagev1alpha1.ReasonUnavailable, layout.MessageOf(err, "/base"))
	for _, condition := range volume.Status.Conditions {
		if len(condition.Message) > message.MaxCondition || !strings.HasSuffix(condition.Message, reason) {
			t.Errorf("%s says %d bytes", condition.Type, len(condition.Message))
		}
	}
}
