package diskclass

import (
	"regexp"
	"strings"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend"
)

var (
	validType = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)
	// validKey is the name of a key, which has versions.
	validKey = regexp.MustCompile(`^projects/[a-z0-9.:-]{1,100}/locations/[a-z0-9-]{1,63}/keyRings/[a-zA-Z0-9_-]{1,63}/cryptoKeys/[a-zA-Z0-9_-]{1,63}$`)
)

// CheckKey returns an error of kind Invalid for what is no key. Empty is none.
func CheckKey(where, key string) error {
	if key == "" || validKey.MatchString(key) {
		return nil
	}
	return backend.Invalid.Errorf("%s is %.300q: name a key of Cloud KMS without a version, as projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY", where, key)
}

// KeyOf returns the key that encrypts a disk, without its version; "" for a key of Google's.
func KeyOf(disk *compute.Disk) string {
	if disk.DiskEncryptionKey == nil {
		return ""
	}
	key, _, _ := strings.Cut(disk.DiskEncryptionKey.KmsKeyName, "/cryptoKeyVersions/")
	return key
}

// SetKey has a new disk encrypted with a key; "" is a key of Google's.
func SetKey(disk *compute.Disk, key string) {
	if key != "" {
		disk.DiskEncryptionKey = &compute.CustomerEncryptionKey{KmsKeyName: key}
	}
}
