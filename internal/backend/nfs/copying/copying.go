// Package copying copies a directory of a share to another, over as many calls as it takes. The copy has its name
// once it is complete, and not before.
//
// Each attempt fills a directory of its own, and remembers how far it is only as long as its process lives. So
// nothing writes to a complete copy any more: neither an earlier leader that is still at work, nor a call whose
// answer was lost and which the server carries out late. The attempt that follows moves the files that are complete
// to its own directory. It first renames the directory of the earlier one, which so never gets the name of the copy.
package copying

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"sync"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// mostCopies is how many calls copy on one server at once, and mostOfNamespace for one namespace. A call copies for
// a long time, and others wait for the server's slots.
const mostCopies, mostOfNamespace = 4, 2

// Copy is one copy.
type Copy struct {
	// ID identifies the copy on its share.
	ID string
	// Namespace is that of the claim, or of the VolumeSnapshot, that the copy is made for.
	Namespace string
	// From and To are the paths of two directories. To doesn't exist until all of From is there.
	From, To string
	// Aside is the path of a folder that only this copy uses: attempts lie in it.
	Aside string
	// Until is when the call ends, so that others can work.
	Until time.Time
	// Complete is called once all is copied, just before it gets its name. Nil: there is nothing to do.
	Complete func() error
}

// Copier makes copies on the shares of one server. Its zero value is usable. All methods are safe for concurrent use.
type Copier struct {
	mu       sync.Mutex
	attempts map[string]*attempt
}

// attempt is one attempt at a copy.
type attempt struct {
	// name is that of its directory; "" until it is made.
	name string
	at   tree.CopyPosition
	// earlier are the names of directories of other attempts, whose complete files it takes over.
	earlier []string
	// busy is set while a call works, which may outlast its caller.
	busy bool
	// namespace is that of the copy.
	namespace string
}

// Run continues a copy, and returns backend.InProgress until it is complete, and on the server's disk. An error of
// kind Invalid says that the directory can't be copied.
func (c *Copier) Run(ctx context.Context, root tree.Dir, of Copy) error {
	there, err := tree.Exists(ctx, root, of.To)
	if err != nil {
		return err
	}
	if !there {
		err = c.attempt(ctx, root, of)
	}
	if err != nil {
		return err
	}
	return c.Forget(ctx, root, of.ID, of.Aside, of.Until)
}

func (c *Copier) attempt(ctx context.Context, root tree.Dir, of Copy) error {
	current, err := c.enter(of)
	if err != nil {
		return err
	}
	err = current.run(ctx, root, of)
	files, bytes := current.at.Seen, current.at.Bytes
	c.leave(of.ID, current, errors.Is(err, tree.ErrLost) || errors.Is(err, fs.ErrNotExist))
	switch {
	case errors.Is(err, tree.ErrUnfinished):
		return backend.InProgress.Errorf("copying: %d files and directories, %d MiB so far", files, bytes>>20)
	case errors.Is(err, tree.ErrChanging):
		return backend.Unavailable.Errorf("files come and go while they are copied: end what writes to them: %w", err)
	case errors.Is(err, tree.ErrTooDeep) || errors.Is(err, tree.ErrTooLarge):
		return backend.Invalid.Errorf("it can't be copied: %w", err)
	}
	return err
}

// enter returns the attempt at a copy. It is backend.InProgress while a call works on it, and while as many calls copy as
// may do so at once: each ends soon, and so every copy has its turn.
func (c *Copier) enter(of Copy) (*attempt, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	current := c.attempts[of.ID]
	if current != nil && current.busy {
		return nil, backend.InProgress.Errorf("an earlier call is still copying: the server answers slowly")
	}
	if all, own := c.busy(of.Namespace); all >= mostCopies || own >= mostOfNamespace {
		return nil, backend.InProgress.Errorf("waiting for its turn: %d copies are being made on the server, %d of them for namespace %s",
			all, own, of.Namespace)
	}
	if c.attempts == nil {
		c.attempts = map[string]*attempt{}
	}
	if current == nil {
		current = &attempt{namespace: of.Namespace}
		c.attempts[of.ID] = current
	}
	current.busy = true
	return current, nil
}

// busy counts the calls that copy, and those for one namespace.
func (c *Copier) busy(namespace string) (all, own int) {
	for _, attempt := range c.attempts {
		if !attempt.busy {
			continue
		}
		all++
		if attempt.namespace == namespace {
			own++
		}
	}
	return all, own
}

// leave ends a call. An attempt with a lost answer isn't continued: the server may yet carry that call out. Nor is
// one whose directory another process removed.
func (c *Copier) leave(id string, current *attempt, lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	current.busy = false
	if lost && c.attempts[id] == current {
		delete(c.attempts, id)
	}
}

// run continues an attempt.
func (a *attempt) run(ctx context.Context, root tree.Dir, of Copy) error {
	if a.name == "" {
		if err := a.begin(ctx, root, of); err != nil {
			return err
		}
	}
	space, err := root.Space(ctx)
	if err != nil {
		return err
	}
	aside := of.Aside + "/" + a.name
	err = tree.Within(ctx, root, of.From, func(from tree.Dir) error {
		return tree.Within(ctx, root, aside, func(to tree.Dir) error {
			return a.withEarlier(ctx, root, of, func(earlier []tree.Dir) error {
				if err := (tree.Copy{From: from, To: to, Earlier: earlier, Most: space.Total, Until: of.Until}).Run(ctx, &a.at); err != nil {
					return err
				}
				info, err := from.Stat(ctx)
				if err == nil {
					err = to.SetAccess(ctx, info.Access)
				}
				return err
			})
		})
	})
	if err == nil {
		err = ensureParent(ctx, root, of.To)
	}
	if err == nil && of.Complete != nil {
		err = of.Complete()
	}
	if err == nil {
		err = tree.Move(ctx, root, aside, of.To)
	}
	return err
}

func ensureParent(ctx context.Context, root tree.Dir, to string) error {
	const passable = 0o755
	if path.Dir(to) == "." {
		return nil
	}
	return tree.EnsureDir(ctx, root, path.Dir(to), passable)
}

// removeFolder removes a folder with its content, if it exists.
func removeFolder(ctx context.Context, root tree.Dir, folder string, until time.Time) error {
	there, err := tree.Exists(ctx, root, folder)
	if err != nil || !there {
		return err
	}
	return tree.At(ctx, root, folder, func(parent tree.Dir, name string) error { return tree.RemoveTree(ctx, parent, name, until) })
}

// Forget removes what attempts at a copy left. Until all is removed, it is backend.InProgress.
func (c *Copier) Forget(ctx context.Context, root tree.Dir, id, aside string, until time.Time) error {
	c.mu.Lock()
	busy := c.attempts[id] != nil && c.attempts[id].busy
	if !busy {
		delete(c.attempts, id)
	}
	c.mu.Unlock()
	if busy {
		return backend.InProgress.Errorf("waiting for a call that still copies: the server answers slowly")
	}
	err := removeFolder(ctx, root, aside, until)
	if errors.Is(err, tree.ErrUnfinished) {
		return backend.InProgress.Errorf("removing what an earlier attempt copied")
	}
	return err
}
