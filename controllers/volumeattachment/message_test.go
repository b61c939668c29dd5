package volumeattachment

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stowage-dev/stowage/internal/message"
)

func TestWhyAnAttachmentFailsIsAsLongAsTheAPITakes(t *testing.T) {
	const reason = ": quota exceeded"
	said := NewVolumeError(errors.New(strings.Repeat("é", 1<<20)+reason), time.Time{}).Message
	if len(said) > message.MaxStatus || !strings.HasSuffix(said, reason) {
		t.Errorf("a VolumeAttachment says %d bytes", len(said))
	}
}
