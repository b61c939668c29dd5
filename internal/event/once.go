package event

import (
	"crypto/sha256"
	"sync"
)

// maxTexts is the number of texts that Once remembers for each key. Users and servers choose
// parts of the texts: without a bound, texts that never repeat would fill the memory. It is
// more than the volumes of a pod, which may all have a problem at once.
const maxTexts = 1024

// Once remembers what was recorded for each key, such as a pod, so that it is recorded once.
// The caller forgets deleted keys. Once remembers the last 1024 texts of a key; an older one
// counts as new again. The zero value is usable. All methods are safe for concurrent use.
type Once[K comparable] struct {
	mu    sync.Mutex
	texts map[K]*texts
}

// sum stands for a text: texts may be long, and a sum never is.
type sum = [sha256.Size]byte

// texts are one key's, oldest first.
type texts struct {
	known map[sum]struct{}
	order []sum
}

// IsNew reports whether a text was not recorded for a key yet, and stores it.
func (o *Once[K]) IsNew(key K, text string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	of, fresh := o.of(key), sha256.Sum256([]byte(text))
	if _, known := of.known[fresh]; known {
		return false
	}
	if len(of.order) == maxTexts {
		delete(of.known, of.order[0])
		of.order = append(of.order[:0], of.order[1:]...)
	}
	of.known[fresh] = struct{}{}
	of.order = append(of.order, fresh)
	return true
}

func (o *Once[K]) of(key K) *texts {
	if o.texts == nil {
		o.texts = map[K]*texts{}
	}
	if o.texts[key] == nil {
		o.texts[key] = &texts{known: map[sum]struct{}{}}
	}
	return o.texts[key]
}

// Forget drops what was recorded for a key.
func (o *Once[K]) Forget(key K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.texts, key)
}
