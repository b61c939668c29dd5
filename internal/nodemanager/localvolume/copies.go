package localvolume

import (
	"fmt"
	"sync"
)

// concurrentCopies is how many volumes are copied at once: a copy may take hours, and
// must leave workers for other volumes.
const concurrentCopies = 2

// copies knows which volumes are being copied, by their directories: those aren't
// removed, nor shown to pods, meanwhile. No record is needed: a copy ends with its
// process. Its zero value is usable.
type copies struct {
	mu sync.Mutex
	of map[string]int
}

// begin says that a volume is being copied, until end is called. What is asked first
// holds until then.
func (c *copies) begin(directory string, first func() error) (end func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := 0
	for _, count := range c.of {
		all += count
	}
	if all >= concurrentCopies {
		return nil, fmt.Errorf("%w: %d other volumes are being copied on this node", errQueued, all)
	}
	if err := first(); err != nil {
		return nil, err
	}
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[directory]++
	return func() { c.end(directory) }, nil
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
// errInUse.
func (c *copies) unless(directory string, do func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[directory] > 0 {
		return fmt.Errorf("%w: it is being copied", errInUse)
	}
	return do()
}

// IsCopied says whether the volume in a directory is being copied. Who shows one to a
// pod asks afterwards: who copies says so first, and then looks who sees it.
func (s *Store) IsCopied(directory string) bool {
	s.copies.mu.Lock()
	defer s.copies.mu.Unlock()
	return s.copies.of[directory] > 0
}
