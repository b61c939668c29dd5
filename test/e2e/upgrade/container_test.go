package upgrade_test

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/nodemanager/container"
)

const (
	// containerArgument has this program be a container: of a pod's directory, its mounts.json, and
	// a name, which its files have.
	containerArgument = "container"
	// containersDir has the root of each container, in the container's own mount namespace.
	containersDir = "/run/containers"
	// pause is between two rounds of a container's work. Nine containers that never rest take the
	// guest all of a CPU.
	pause = 100 * time.Millisecond
	// firstOffset is where containers write to a device, each at an offset of its own. Before it is
	// what specs write.
	firstOffset, offsets, offsetSize = 1 << 20, 1 << 10, 1 << 12
)

// runContainer works in the volumes of a container until its input ends, and prints a line after
// each round. It sees nothing else of the node.
func runContainer(podDir, named, name string) error {
	content, err := os.ReadFile(filepath.Join(podDir, "containers", named, "mounts.json"))
	if err != nil {
		return err
	}
	var described container.Description
	if err := json.Unmarshal(content, &described); err != nil {
		return err
	}
	if err := enter(described, filepath.Join(containersDir, name)); err != nil {
		return fmt.Errorf("entering the container: %w", err)
	}
	workers, err := workersOf(described, name)
	if err != nil {
		return err
	}
	var stop atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // however it ends
		stop.Store(true)
	}()
	for round, tick := 0, time.Tick(pause); !stop.Load(); round++ {
		for _, work := range workers {
			if err := work(round); err != nil {
				return fmt.Errorf("in round %d: %w", round, err)
			}
		}
		fmt.Println(round)
		<-tick
	}
	return nil
}

// enter makes the described mounts and devices this process's only ones. Its mount namespace is
// its own already.
func enter(described container.Description, root string) error {
	old := filepath.Join(root, ".old")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("container", root, "tmpfs", 0, ""); err != nil {
		return err
	}
	if err := os.Mkdir(old, 0o700); err != nil {
		return err
	}
	for _, each := range described.Mounts {
		at := filepath.Join(root, each.Destination)
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(each.Source, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("binding %s: %w", each.Source, err)
		}
	}
	for _, each := range described.Devices {
		at := filepath.Join(root, each.Path)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := unix.Mknod(at, unix.S_IFBLK|0o600, int(unix.Mkdev(uint32(each.Major), uint32(each.Minor)))); err != nil {
			return fmt.Errorf("making %s: %w", at, err)
		}
	}
	if err := unix.PivotRoot(root, old); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return unix.Unmount("/.old", unix.MNT_DETACH)
}

// workersOf is the work in each volume, whose files and devices stay open.
func workersOf(described container.Description, name string) (workers []func(int) error, err error) {
	for _, each := range described.Mounts {
		log, err := os.OpenFile(filepath.Join(each.Destination, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
		if err != nil {
			return nil, err
		}
		workers = append(workers, func(round int) error {
			if _, err := fmt.Fprintln(log, round); err != nil {
				return err
			}
			return comesAndGoes(filepath.Join(each.Destination, name+".tmp"), fmt.Sprint(round))
		})
	}
	offset := firstOffset + int64(crc32.ChecksumIEEE([]byte(name))%offsets)*offsetSize
	for _, each := range described.Devices {
		device, err := os.OpenFile(each.Path, os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		workers = append(workers, func(round int) error { return overwrites(device, offset, fmt.Sprint(round)) })
	}
	if len(workers) == 0 {
		err = fmt.Errorf("container %s has no volume", name)
	}
	return workers, err
}

// comesAndGoes is a file that is written, read and removed by its path.
func comesAndGoes(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return err
	}
	got, err := os.ReadFile(path)
	if err == nil && string(got) != text {
		err = fmt.Errorf("%s has %q, not %q", path, got, text)
	}
	if err != nil {
		return err
	}
	return os.Remove(path)
}

// overwrites writes to a device, and reads it again.
func overwrites(device *os.File, offset int64, text string) error {
	if _, err := device.WriteAt([]byte(text), offset); err != nil {
		return err
	}
	got := make([]byte, len(text))
	if _, err := device.ReadAt(got, offset); err != nil {
		return err
	}
	if string(got) != text {
		return fmt.Errorf("%s has %q, not %q", device.Name(), got, text)
	}
	return device.Sync()
}
