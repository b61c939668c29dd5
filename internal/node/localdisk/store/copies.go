package store

import (
	"fmt"
	"path/filepath"
	"sync"

	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// concurrentCopies is how many volumes of a folder are copied at once: a copy may take
// hours, and must leave its lane to other volumes.
const concurrentCopies = 2

// copies knows which volumes are being copied, by their directories: those aren't
// removed, nor shown to pods, meanwhile. No record is needed: a copy ends with its
// process. Nobody holds the lock while a disk is waited for. Its zero value is usable.
type copies struct {
	mu sync.Mutex
	of map[string]int
	// going are the volumes that are being moved away just now.
	going map[string]bool
}

// begin says that a volume is being copied, until end is called. What is asked first
// holds until then.
func (c *copies) begin(directory string, first func() error) (end func(), err error) {
	if err := c.enter(directory); err != nil {
		return nil, err
	}
	if err := first(); err != nil {
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
	case c.going[directory]:
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

// unless does something while no copy of a volume begins. One that is being copied is
// ErrInUse.
func (c *copies) unless(directory string, do func() error) error {
	c.mu.Lock()
	if c.of[directory] > 0 {
		c.mu.Unlock()
		return fmt.Errorf("%w: it is being copied", layout.ErrInUse)
	}
	if c.going == nil {
		c.going = map[string]bool{}
	}
	c.going[directory] = true
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.going, directory)
	}()
	return do()
}
