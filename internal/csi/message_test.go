package csi

import (
	"errors"
	"strings"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/message"
)

func TestMessagesToAKubeletFitAHeader(t *testing.T) {
	long := errors.New(strings.Repeat("é", 1<<20) + ": stale file handle")
	for name, got := range map[string]string{
		"an answer": status.Convert(toStatus(long, csispec.Node_NodePublishVolume_FullMethodName)).Message(),
		"a health":  ailment(long).Message,
	} {
		if len(got) > message.MaxStatus || !strings.HasSuffix(got, ": stale file handle") {
			t.Errorf("%s has %d bytes", name, len(got))
		}
	}
}
