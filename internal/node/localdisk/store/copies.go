package store

import (
	"fmt"
	"path/filepath"
	"sync"

	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// concurrentCopies is how many volumes of a folder are copied at once: a copy may take hours,
// and must leave slots to other volumes.
const concurrentCopies = 2

// copies are the volumes that are being copied, by their directories: they are neither removed nor published to pods
// during the copy. No record is needed: a copy ends with its process. No method holds mu while it waits for a disk. Its
// zero value is usable.
type copies struct {
	mu sync.Mutex
	of map[string]int
	// retiring are the volumes that are being moved away just now.
	retiring map[string]bool
}

// begin records that a volume is being copied, until end is called. What check found holds until
// then.
func (c *copies) begin(directory string, check func() error) (end func(), err error) {
	if err := c.enter(directory); err != nil {
		return nil, err
	}
	if err := check(); err != nil {
		c.end(directory)
		return nil, err
	}
	return func() { c.end(directory) }, nil
}

func (c *copies) enter(directory string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	beside := 0
	for copied, count := range c.of {
		if filepath.Dir(copied) == filepath.Dir(directory) {
			beside += count
		}
	}
	switch {
	case beside >= concurrentCopies:
		return fmt.Errorf("%w: %d other volumes of its folder are being copied", layout.ErrQueued, beside)
	case c.retiring[directory]:
		return fmt.Errorf("%w: the volume is being removed", layout.ErrQueued)
	}
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[directory]++
	return nil
}

func (c *copies) end(directory string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[directory]--
	if c.of[directory] == 0 {
		delete(c.of, directory)
	}
}

// unless calls do while no copy of a volume can begin. It is ErrInUse if the volume is being
// copied.
func (c *copies) unless(directory string, do func() error) error {
	c.mu.Lock()
	if c.of[directory] > 0 {
		c.mu.Unlock()
		return fmt.Errorf("%w: it is being copied", layout.ErrInUse)
	}
	if c.retiring == nil {
		c.retiring = map[string]bool{}
	}
	c.retiring[directory] = true
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.retiring, directory)
	}()
	return do()
}
