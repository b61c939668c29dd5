// Package state keeps what exists in the cloud. It has rows of disks, instances, snapshots, images,
// storage pools, attachments and operations, by path. The contents of disks are sparse files. A
// journal has all rows that changed at once in one line, so that a crash leaves a change whole or
// not at all. The engine and the resources call it.
//
// It never decides whether a change is allowed, and never calls a device.
package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// keepOperations is how long operations that ended are remembered, and with them the
// ids of their requests.
const keepOperations = 24 * time.Hour

// Store holds all that exists, by path such as projects/p/zones/z/disks/d. Rows are as
// clients see them, but with paths where clients see URLs. Change them with the lock
// held, then commit: what was committed is there after a restart, whole or not at all.
type Store struct {
	mutex       sync.Mutex
	Disks       Table[compute.Disk]
	Instances   Table[compute.Instance]
	Snapshots   Table[compute.Snapshot]
	Images      Table[compute.Image]
	Instants    Table[compute.InstantSnapshot]
	Pools       Table[compute.StoragePool]
	Attachments Table[Attachment]
	Operations  Table[Operation]
	// Requests has the operation of each request id.
	Requests map[string]string
	// Closed stores don't change any more: the folder may be another server's.
	Closed bool

	lock    *os.File
	journal *journal
}

// Lock keeps all others from the rows until Unlock.
func (s *Store) Lock() { s.mutex.Lock() }

// Unlock ends Lock.
func (s *Store) Unlock() { s.mutex.Unlock() }

// Open opens the store in a folder, which it makes where there is none.
func Open(folder string, now time.Time) (*Store, error) {
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
	s := &Store{lock: lock, Requests: map[string]string{}}
	s.journal, err = openJournal(filepath.Join(folder, "state.jsonl"), s.tables())
	if err != nil {
		lock.Close()
		return nil, err
	}
	s.forgetOld(now)
	for path, row := range s.Operations.Rows {
		s.Requests[row.RequestID] = path
	}
	// All of it again: what came after a part of a line would be lost with it.
	if err := s.journal.compact(s.tables()); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) tables() map[string]anyTable {
	return map[string]anyTable{
		"disks": &s.Disks, "instances": &s.Instances, "snapshots": &s.Snapshots,
		"images": &s.Images, "instantSnapshots": &s.Instants, "storagePools": &s.Pools,
		"attachments": &s.Attachments, "operations": &s.Operations,
	}
}

// forgetOld drops operations that ended long ago.
func (s *Store) forgetOld(now time.Time) {
	for path, row := range s.Operations.Rows {
		ended, err := time.Parse(time.RFC3339, row.Public.EndTime)
		if row.Public.Status == StatusDone && err == nil && now.Sub(ended) > keepOperations {
			delete(s.Requests, row.RequestID)
			s.Operations.Remove(path)
		}
	}
}

// commit writes what changed. After an error the changes hold in memory, and the next
// commit writes them.
func (s *Store) commit() error {
	return s.journal.append(s.tables())
}

// Update makes a change with the lock held, and commits it unless it fails.
func (s *Store) Update(change func() error) error {
	s.Lock()
	defer s.Unlock()
	if s.Closed {
		return wire.Closed()
	}
	if err := change(); err != nil {
		return err
	}
	return s.commit()
}

// Close closes the files. Another store may open the folder from then on.
func (s *Store) Close() error {
	return errors.Join(s.journal.file.Close(), s.lock.Close())
}
