package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/stowage-dev/stowage/internal/mount"
)

// Mounts looks at a node's mounts, for as many as ask it to.
type Mounts struct {
	mu      sync.Mutex
	watches map[string]*mountWatch
}

// Below is what a caller, of a name of its own, has watched: these paths, and all below them.
type Below struct {
	Name  string
	Paths []string
}

// Begin begins to watch, and returns how much is mounted.
func (m *Mounts) Begin(request Below, count *int) error {
	ctx, stop := context.WithCancel(context.Background()) // a call has none: it ends with End
	before, err := mountedBelow(request.Paths)
	if err != nil {
		stop()
		return err
	}
	*count = len(before)
	l := &mountWatch{paths: request.Paths, before: before, stop: stop}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.watches == nil {
		m.watches = map[string]*mountWatch{}
	}
	m.watches[request.Name] = l
	go func() {
		if err := mount.Watch(ctx, l.again); err != nil {
			l.record(err.Error())
		}
	}()
	return nil
}

// End ends that, and returns what changed since Begin.
func (m *Mounts) End(name string, changes *[]string) error {
	m.mu.Lock()
	l := m.watches[name]
	m.mu.Unlock()
	if l == nil {
		return fmt.Errorf("no watch is called %s", name)
	}
	l.again()
	l.stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	*changes = append([]string{}, l.changes...)
	return nil
}

// mountWatch is at what was mounted when it began, at some paths and below them.
type mountWatch struct {
	paths, before []string
	stop          context.CancelFunc

	mu      sync.Mutex
	changes []string
}

// again records what changed since the beginning, also if it is put right a moment later.
func (l *mountWatch) again() {
	now, err := mountedBelow(l.paths)
	if err != nil {
		l.record(err.Error())
		return
	}
	for _, one := range l.before {
		if !slices.Contains(now, one) {
			l.record("gone: " + one)
		}
	}
	for _, one := range now {
		if !slices.Contains(l.before, one) {
			l.record("new: " + one)
		}
	}
}

func (l *mountWatch) record(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.changes, what) {
		l.changes = append(l.changes, what)
	}
}

// mountedBelow is all that a mount has but how it hears of others.
func mountedBelow(paths []string) ([]string, error) {
	table, err := mount.Kernel{}.Table()
	var all []string
	for _, path := range paths {
		for _, point := range table.Below(path) {
			point.Group, point.Master = 0, 0
			all = append(all, fmt.Sprintf("%+v", point))
		}
	}
	return all, err
}
