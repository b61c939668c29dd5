package gcemock

import (
	"encoding/base64"
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
)

// catalogTime is when Google made what was always there.
const catalogTime = "1969-12-31T16:00:00.000-08:00"

// idOf is the id of what was always there: the same each time.
func idOf(path string) uint64 {
	hash := fnv.New64a()
	hash.Write([]byte(path))
	return hash.Sum64() >> 1
}

// newID makes an id that is used once.
func newID() uint64 { return rand.Uint64()>>1 | 1<<59 }

// fingerprintOf is the fingerprint of labels.
func fingerprintOf(labels map[string]string) string {
	text, err := json.Marshal(labels) // in order of keys
	if err != nil || len(labels) == 0 {
		return "42WmSpB8rSM="
	}
	hash := fnv.New64a()
	hash.Write(text)
	return base64.URLEncoding.EncodeToString(hash.Sum(nil))
}
