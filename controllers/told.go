package controllers

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// told remembers what was last told of an object where no condition does, so that
// the same is not told on every pass. Its zero value is usable.
type told struct {
	mu    sync.Mutex
	texts map[types.NamespacedName]string
}

// isNews notes a text and tells whether it differs from the last one.
func (t *told) isNews(of types.NamespacedName, text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.texts[of] == text {
		return false
	}
	if t.texts == nil {
		t.texts = map[types.NamespacedName]string{}
	}
	t.texts[of] = text
	return true
}

// forget drops what was told of an object that is gone.
func (t *told) forget(of types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.texts, of)
}
