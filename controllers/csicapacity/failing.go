package csicapacity

import "sync"

// failing are the objects whose room isn't known, by their class. The zero value is usable.
type failing struct {
	mu       sync.Mutex
	classes  map[string]int
	ofObject map[string]string
}

// add reports whether the object is the first of its class.
func (f *failing) add(class, object string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.ofObject[object]; known {
		return false
	}
	if f.ofObject == nil {
		f.classes, f.ofObject = map[string]int{}, map[string]string{}
	}
	f.ofObject[object] = class
	f.classes[class]++
	return f.classes[class] == 1
}

func (f *failing) remove(object string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	class, known := f.ofObject[object]
	if !known {
		return
	}
	delete(f.ofObject, object)
	f.classes[class]--
	if f.classes[class] == 0 {
		delete(f.classes, class)
	}
}
