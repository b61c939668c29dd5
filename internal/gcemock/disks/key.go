package disks

import (
	"regexp"
	"strings"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

const (
	// versions is between a key's name and its version.
	versions = "/cryptoKeyVersions/"
	// currentVersion is that of each key: none is rotated, and none is missing.
	currentVersion = versions + "1"
)

var validKey = regexp.MustCompile(`^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+$`)

// newKey is the key of Cloud KMS that a request names, with its version, as answers have it. Nil is a
// key of Google's. Keys that clients send are not served.
func newKey(requested *compute.CustomerEncryptionKey) (*compute.CustomerEncryptionKey, error) {
	switch {
	case requested == nil:
		return nil, nil
	case requested.RawKey != "" || requested.RsaEncryptedKey != "" || requested.KmsKeyServiceAccount != "":
		return nil, wire.NotServed("an encryption key other than one of Cloud KMS, and its service account")
	case !validKey.MatchString(keyName(requested)):
		return nil, wire.Invalid("resource.diskEncryptionKey.kmsKeyName", requested.KmsKeyName, "It is no key of Cloud KMS.")
	}
	return &compute.CustomerEncryptionKey{KmsKeyName: keyName(requested) + currentVersion}, nil
}

// keyName is the name of a key without its version.
func keyName(key *compute.CustomerEncryptionKey) string {
	if key == nil {
		return ""
	}
	name, _, _ := strings.Cut(key.KmsKeyName, versions)
	return name
}

// inheritKey gives a clone the key of its source. A request can name no other.
func inheritKey(from compute.Disk, clone *compute.Disk) error {
	if clone.DiskEncryptionKey != nil && keyName(clone.DiskEncryptionKey) != keyName(from.DiskEncryptionKey) {
		return wire.Invalid("resource.diskEncryptionKey", clone.DiskEncryptionKey.KmsKeyName, "A clone has the key of its source disk.")
	}
	clone.DiskEncryptionKey = from.DiskEncryptionKey
	return nil
}
