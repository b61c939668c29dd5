package hotplug

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// serials is the folder with a file for each device, which has its serial.
const serials = "serial"

// Folder has what instances can see of their devices, in <project>/<zone>/<instance> below it: a
// link google-<name> to the device, and in serial/<device> the serial. The serial is there before
// the link is, and until the device vanished. A client that has the device open reads the serial of
// that device.
type Folder string

func (f Folder) of(device Device) string {
	return filepath.Join(string(f), device.Project, device.Zone, device.Instance)
}

func (f Folder) link(device Device) string { return filepath.Join(f.of(device), "google-"+device.Name) }

// writeSerial notes the serial of a device that is about to appear, or has.
func (f Folder) writeSerial(device Device, kernelName string) error {
	folder := filepath.Join(f.of(device), serials)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return replace(filepath.Join(folder, kernelName), func(path string) error {
		return os.WriteFile(path, []byte(device.Name+"\n"), 0o644)
	})
}

// writeLink makes a device be found by its name.
func (f Folder) writeLink(device Device, target string) error {
	return replace(f.link(device), func(path string) error { return os.Symlink(target, path) })
}

// removeLink makes a device not be found any more.
func (f Folder) removeLink(device Device) error { return remove(f.link(device)) }

// removeSerial makes no device of the instance have this one's serial, also one that
// a crash left behind.
func (f Folder) removeSerial(device Device) error {
	files, err := filepath.Glob(filepath.Join(f.of(device), serials, "*"))
	if err != nil {
		return err
	}
	for _, file := range files {
		serial, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			// Another server with this folder removed it.
			continue
		}
		if err != nil {
			return err
		}
		if strings.TrimSpace(string(serial)) != device.Name {
			continue
		}
		if err := remove(file); err != nil {
			return err
		}
	}
	return nil
}

// targets are the devices that links of all instances lead to.
func (f Folder) targets() (map[string]int, error) {
	links, err := filepath.Glob(filepath.Join(string(f), "*", "*", "*", "google-*"))
	if err != nil {
		return nil, err
	}
	targets := map[string]int{}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err == nil {
			targets[target]++
		} else if !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return targets, nil
}

// replace makes a file under another name and renames it, so that no reader
// sees half of it.
func replace(path string, write func(string) error) error {
	fresh := filepath.Join(filepath.Dir(path), ".new-"+filepath.Base(path))
	if err := remove(fresh); err != nil {
		return err
	}
	if err := write(fresh); err != nil {
		return err
	}
	if err := os.Rename(fresh, path); err != nil {
		return fmt.Errorf("putting %s in place: %w", path, err)
	}
	return nil
}

func remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
