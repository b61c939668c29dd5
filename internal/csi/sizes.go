package csi

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/remote"
)

// sizePatience is how long a call waits for a file system.
const sizePatience = 2 * time.Second

// sizes measures how large volumes are, and what is used of them. A volume whose server
// hangs keeps one goroutine, however many calls ask for it, and delays each by sizePatience.
type sizes struct {
	measure  func(path string) (size, error)
	patience time.Duration

	mu  sync.Mutex
	now map[string]*measurement
}

// measurement is one that runs; done is closed when it is over.
type measurement struct {
	done  chan struct{}
	found size
	err   error
}

// size is what is known of one volume: of a file system all, of a device its bytes.
type size struct {
	bytes  int64
	system *unix.Statfs_t
}

func newSizes() *sizes {
	return &sizes{measure: measureSize, patience: sizePatience, now: map[string]*measurement{}}
}

// ask measures one path. Calls for the same path share a measurement.
func (s *sizes) ask(ctx context.Context, path string) (size, error) {
	asked := s.begin(path)
	patience := time.NewTimer(s.patience)
	defer patience.Stop()
	select {
	case <-asked.done:
		return asked.found, asked.err
	case <-ctx.Done():
		return size{}, ctx.Err()
	case <-patience.C:
		return size{}, fmt.Errorf("measuring %s: %w", path, remote.ErrSilent)
	}
}

func (s *sizes) begin(path string) *measurement {
	s.mu.Lock()
	defer s.mu.Unlock()
	if running := s.now[path]; running != nil {
		return running
	}
	begun := &measurement{done: make(chan struct{})}
	s.now[path] = begun
	go func() {
		begun.found, begun.err = s.measure(path)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.now, path)
		close(begun.done)
	}()
	return begun
}

// measureSize asks the kernel. It may never return.
func measureSize(path string) (size, error) {
	info, err := os.Stat(path)
	if err != nil {
		return size{}, err
	}
	if info.Mode()&os.ModeDevice != 0 {
		bytes, err := deviceSize(path)
		return size{bytes: bytes}, err
	}
	system := &unix.Statfs_t{}
	if err := unix.Statfs(path, system); err != nil {
		return size{}, fmt.Errorf("asking for the size of the file system at %s: %w", path, err)
	}
	return size{system: system}, nil
}

func deviceSize(path string) (int64, error) {
	device, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer device.Close()
	return device.Seek(0, io.SeekEnd)
}

// usage is a size in the words of the interface.
func (s size) usage() []*csispec.VolumeUsage {
	if s.system == nil {
		return []*csispec.VolumeUsage{{Unit: csispec.VolumeUsage_BYTES, Total: s.bytes}}
	}
	said := s.system
	inBytes := func(blocks uint64) int64 { return count(blocks * uint64(said.Frsize)) }
	return []*csispec.VolumeUsage{
		{
			Unit: csispec.VolumeUsage_BYTES, Total: inBytes(said.Blocks),
			Available: inBytes(said.Bavail), Used: inBytes(said.Blocks - said.Bfree),
		},
		{
			Unit: csispec.VolumeUsage_INODES, Total: count(said.Files),
			Available: count(said.Ffree), Used: count(said.Files - said.Ffree),
		},
	}
}

// count is a number as the interface can have it. For "no limit", some file systems have
// the largest number that there is.
func count(number uint64) int64 { return int64(min(number, math.MaxInt64)) }
