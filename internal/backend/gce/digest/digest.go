// Package digest computes from words what must be the same in each process, and after a crash: the ids of requests, and
// choices among zones.
package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Of is a hash of words, whatever is in them.
func Of(words ...string) string {
	hash := sha256.New()
	for _, word := range words {
		fmt.Fprintf(hash, "%d:%s,", len(word), word)
	}
	return string(hash.Sum(nil))
}

// Hex is Of in hexadecimal digits.
func Hex(words ...string) string { return hex.EncodeToString([]byte(Of(words...))) }

// RequestID is the id of the attempt at a change after an earlier operation. It has the form of a
// UUID made from a hash.
func RequestID(key string, before any) string {
	after, _ := before.(string)
	id := []byte(Of("stowage.dev", key, after))[:16]
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
