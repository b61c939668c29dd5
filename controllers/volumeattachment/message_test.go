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
	text := NewVolumeError(errors.New(strings.Repeat("é", 1<<20)+reason), time.Time{}).Message
	if len(text) > message.MaxStatus || !strings.HasSuffix(text, reason) {
		t.Errorf("a VolumeAttachment says %d bytes", len(text))
	}
}
