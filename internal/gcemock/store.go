package gcemock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/api/compute/v1"
)

// keepOperations is how long operations that ended are remembered, and with them the
// ids of their requests.
const keepOperations = 24 * time.Hour

// store holds all that exists, by path such as projects/p/zones/z/disks/d. Rows are as
// clients see them, but with paths where clients see URLs. Change them with the lock
// held, then commit: what was committed is there after a restart, whole or not at all.
type store struct {
	sync.Mutex
	disks       table[compute.Disk]
	instances   table[compute.Instance]
	snapshots   table[compute.Snapshot]
	images      table[compute.Image]
	instants    table[compute.InstantSnapshot]
	pools       table[compute.StoragePool]
	attachments table[attachment]
	operations  table[operation]
	// requests has the operation of each request id.
	requests map[string]string
	// closed stores don't change any more: the folder may be another server's.
	closed bool

	lock    *os.File
	journal *journal
}

// openStore opens the store in a folder, which it makes where there is none.
func openStore(folder string, now time.Time) (*store, error) {
	if err := os.MkdirAll(filepath.Join(folder, contentsFolder), 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("locking %s (does another server use it?): %w", folder, err)
	}
	s := &store{lock: lock, requests: map[string]string{}}
	s.journal, err = openJournal(filepath.Join(folder, "state.jsonl"), s.tables())
	if err != nil {
		lock.Close()
		return nil, err
	}
	s.forgetOld(now)
	for path, row := range s.operations.rows {
		s.requests[row.RequestID] = path
	}
	// All of it anew: what came after a part of a line would be lost with it.
	if err := s.journal.compact(s.tables()); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *store) tables() map[string]anyTable {
	return map[string]anyTable{
		"disks": &s.disks, "instances": &s.instances, "snapshots": &s.snapshots,
		"images": &s.images, "instantSnapshots": &s.instants, "storagePools": &s.pools,
		"attachments": &s.attachments, "operations": &s.operations,
	}
}

// forgetOld drops operations that ended long ago.
func (s *store) forgetOld(now time.Time) {
	for path, row := range s.operations.rows {
		ended, err := time.Parse(time.RFC3339, row.Public.EndTime)
		if row.Public.Status == statusDone && err == nil && now.Sub(ended) > keepOperations {
			delete(s.requests, row.RequestID)
			s.operations.remove(path)
		}
	}
}

// commit writes what changed. After an error the changes hold in memory, and the next
// commit writes them.
func (s *store) commit() error {
	return s.journal.append(s.tables())
}

// update makes a change with the lock held, and commits it unless it fails.
func (s *store) update(change func() error) error {
	s.Lock()
	defer s.Unlock()
	if s.closed {
		return errClosed()
	}
	if err := change(); err != nil {
		return err
	}
	return s.commit()
}

func (s *store) close() error {
	return errors.Join(s.journal.file.Close(), s.lock.Close())
}
