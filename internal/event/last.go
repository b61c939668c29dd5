package event

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Last remembers what was recorded last of an object where no condition does, so that
// the same is not told on every pass. Its zero value is usable.
type Last struct {
	mu    sync.Mutex
	texts map[types.NamespacedName]string
}

// IsNews notes a text and tells whether it differs from the last one.
func (t *Last) IsNews(of types.NamespacedName, text string) bool {
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

// Forget drops what was told of an object that is gone.
func (t *Last) Forget(of types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.texts, of)
}
