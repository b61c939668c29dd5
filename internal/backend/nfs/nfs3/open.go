package nfs3

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// Open opens the root of a share. The Dir has to be closed.
func (c *Client) Open(ctx context.Context, path string) (tree.Dir, error) {
	session := &session{client: c, share: path, conn: c.popIdle()}
	root, err := c.root(ctx, session)
	if err != nil {
		session.end()
		return nil, fmt.Errorf("opening share %s of server %s: %w", path, c.host, err)
	}
	return root, nil
}

// root finds the share's root and checks that the server still knows it.
func (c *Client) root(ctx context.Context, session *session) (*dir, error) {
	if handle, remembered := c.handle(session.share); remembered {
		root, err := session.describeRoot(ctx, handle)
		if !errors.Is(err, syscall.ESTALE) {
			return root, err
		}
	}
	handle, err := c.mount(ctx, session.share)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.roots[session.share] = handle
	c.mu.Unlock()
	return session.describeRoot(ctx, handle)
}

func (s *session) describeRoot(ctx context.Context, handle []byte) (*dir, error) {
	root := &dir{session: s, handle: handle, path: s.share, root: true}
	info, err := root.Stat(ctx)
	if err != nil {
		return nil, err
	}
	if info.Type != tree.Directory {
		return nil, wrap("opening", s.share, syscall.ENOTDIR)
	}
	root.fileSystem = info.FileSystem
	return root, nil
}
