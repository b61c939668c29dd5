package engine

import (
	"strings"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/fault"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// CheckKey returns why what a key of Cloud KMS encrypts can't be read or written now. Nil is a key of Google's.
func (s *Engine) CheckKey(key *compute.CustomerEncryptionKey) error {
	if key == nil {
		return nil
	}
	name, _, _ := strings.Cut(key.KmsKeyName, "/cryptoKeyVersions/")
	switch state := s.Faults.Key(name); state {
	case "ENABLED":
		return nil
	case fault.KeyDenied:
		return wire.KeyDenied(name)
	default:
		return wire.KeyNotEnabled(key.KmsKeyName, state)
	}
}
