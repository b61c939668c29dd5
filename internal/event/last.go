package event

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Last remembers the last text that was recorded for an object without a condition, so that
// not every pass repeats it. The zero value is usable.
type Last struct {
	mu    sync.Mutex
	texts map[types.NamespacedName]string
}

// IsNew stores a text and reports whether it differs from the last one.
func (t *Last) IsNew(of types.NamespacedName, text string) bool {
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

// Forget drops the text of a deleted object.
func (t *Last) Forget(of types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.texts, of)
}
