package wire

import (
	"encoding/base64"
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
)

// CatalogTime is when Google made what was always there.
const CatalogTime = "1969-12-31T16:00:00.000-08:00"

// IDOf is the id of what was always there: the same each time.
func IDOf(path string) uint64 {
	hash := fnv.New64a()
	hash.Write([]byte(path))
	return hash.Sum64() >> 1
}

// NewID makes an id that is used once.
func NewID() uint64 { return rand.Uint64()>>1 | 1<<59 }

// FingerprintOf is the fingerprint of labels.
func FingerprintOf(labels map[string]string) string {
	text, err := json.Marshal(labels) // in order of keys
	if err != nil || len(labels) == 0 {
		return "42WmSpB8rSM="
	}
	hash := fnv.New64a()
	hash.Write(text)
	return base64.URLEncoding.EncodeToString(hash.Sum(nil))
}
