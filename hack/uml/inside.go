package uml

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// MachineDir is where a guest has all files of the machine, those in the machine's
// /run and /tmp too, which its own hide. It can't write to them.
const MachineDir = "/run/machine"

// Prepare makes a guest usable: its host name, and file systems. The guest's first process
// calls it first.
func Prepare(name string) error {
	if err := unix.Sethostname([]byte(name)); err != nil {
		return err
	}
	for _, mount := range []struct{ kind, target string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"tmpfs", "/run"}, {"tmpfs", "/tmp"},
	} {
		if err := unix.Mount(mount.kind, mount.target, mount.kind, 0, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", mount.target, err)
		}
	}
	if err := os.Mkdir(MachineDir, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("machine", MachineDir, "hostfs", unix.MS_RDONLY, "/"); err != nil {
		return fmt.Errorf("mounting the machine's files: %w", err)
	}
	// A kernel gives its first process no PATH.
	return os.Setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
}

// LoadModules loads kernel modules, each with those that it needs. Parameters follow a name
// after a space, such as "loop max_part=7".
func LoadModules(modules ...string) error {
	folder, list, err := modulesDir()
	if err != nil {
		return fmt.Errorf("reading which module needs which: %w", err)
	}
	for _, module := range modules {
		name, parameters, _ := strings.Cut(module, " ")
		if err := load(folder, list, name, parameters); err != nil {
			return err
		}
	}
	return nil
}

// load finds a module's line, which names it and then those that it needs, each
// before the ones that it needs itself.
func load(folder, list, name, parameters string) error {
	for line := range strings.Lines(list) {
		files := strings.Fields(strings.Replace(line, ":", " ", 1))
		if len(files) == 0 || filepath.Base(files[0]) != name+".ko" {
			continue
		}
		for i := len(files) - 1; i >= 0; i-- {
			own := ""
			if i == 0 {
				own = parameters
			}
			if err := insert(filepath.Join(folder, files[i]), own); err != nil {
				return fmt.Errorf("loading module %s: %w", files[i], err)
			}
		}
		return nil
	}
	return fmt.Errorf("loading module %s: this kernel has none of that name", name)
}

func insert(path, parameters string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	err = unix.FinitModule(int(file.Fd()), parameters, 0)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// PowerOff ends the guest.
func PowerOff() error {
	unix.Sync()
	return unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}
