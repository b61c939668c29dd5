// Package leftovers finds and removes what tests left on this machine: processes, mounts,
// loop devices, cgroups, sockets and folders. `make clean-machine` cleans up after those that
// were killed; each end-to-end suite detaches its own folder when it ends.
//
// Package owned says what is a test's. Nothing else is touched, nor is what belongs to
// a folder whose owner lives.
package leftovers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/stowage-dev/stowage/internal/holder"
	"github.com/stowage-dev/stowage/test/harness/owned"
)

// ErrKept says that something could not be removed.
var ErrKept = errors.New("something of a test's is still there")

// Cleaner cleans Root, which has the folders of tests. A DryRun removes nothing. Output
// gets a line for each thing.
type Cleaner struct {
	Root   string
	DryRun bool
	Output io.Writer
}

// thing is something that is there, and what processes hold of it.
type thing struct {
	name string
	held holder.Thing
}

// kinds of things are in the order in which one holds the next, the folder's own last. What
// find finds after remove could not be removed.
var kinds = []struct {
	find   func(folder string) ([]thing, error)
	remove func(ctx context.Context, folder string) error
}{
	{processes, killProcesses},
	{disks, removeDisks},
	{cgroups, removeCgroups},
	{files, removeFiles},
}

// Clean finds, names and removes. What is in use by a test that runs is named, too.
func (c Cleaner) Clean(ctx context.Context) error {
	folders, err := filepath.Glob(filepath.Join(c.Root, owned.Prefix+"*"))
	if err != nil {
		return fmt.Errorf("finding the folders of tests: %w", err)
	}
	gone, err := goneFolders(c.Root)
	problems := []error{err}
	for _, folder := range slices.Concat(folders, gone) {
		pid, err := userOf(folder)
		switch {
		case errors.Is(err, owned.ErrForeign):
		case err != nil:
			problems = append(problems, err)
		case pid != 0:
			c.say("left alone: %s, in use by %s", folder, describe(pid))
		default:
			problems = append(problems, c.cleanFolder(ctx, folder))
		}
	}
	return errors.Join(problems...)
}

// Detach removes all that belongs to a folder, but for the folder and what is in it. It tries
// again while the last processes end.
func Detach(ctx context.Context, folder string) error {
	for _, kind := range kinds[:len(kinds)-1] {
		err := until(ctx, func() error {
			problem := kind.remove(ctx, folder)
			left, err := kind.find(folder)
			if err == nil && len(left) > 0 {
				err = errors.Join(fmt.Errorf("%w: %s", ErrKept, left[0].name), problem)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// userOf is a process that uses a folder; 0 if none does. Of a folder that is gone, which
// only devices name, the owner isn't known: there each process counts.
func userOf(folder string) (pid int, err error) {
	pid, err = owned.Owner(folder)
	if !errors.Is(err, os.ErrNotExist) {
		return pid, err
	}
	if users := processesOf(folder); len(users) > 0 {
		return users[0], nil
	}
	return 0, nil
}

// cleanFolder removes all that belongs to a folder, and the folder last: what is kept
// is recognised by it the next time.
func (c Cleaner) cleanFolder(ctx context.Context, folder string) error {
	for _, kind := range kinds {
		before, err := kind.find(folder)
		if err != nil {
			return err
		}
		if c.DryRun {
			for _, thing := range before {
				c.say("would remove: %s", thing.name)
			}
			continue
		}
		problem := kind.remove(ctx, folder)
		after, err := kind.find(folder)
		if err != nil {
			return err
		}
		for _, thing := range before {
			if !slices.Contains(after, thing) {
				c.say("removed: %s", thing.name)
			}
		}
		for _, thing := range after {
			c.say("kept: %s (%v)", thing.name, problem)
			for process := range thing.held.Holders(holder.Processes) {
				c.say("    held by %s", process)
			}
		}
		if len(after) > 0 {
			return fmt.Errorf("%w: %s", ErrKept, after[0].name)
		}
	}
	return nil
}

func (c Cleaner) say(format string, arguments ...any) {
	fmt.Fprintf(c.Output, format+"\n", arguments...)
}
