package attach_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/hack/uml"
	"github.com/stowage-dev/stowage/test/harness/cluster"
	"github.com/stowage-dev/stowage/test/harness/googlenode"
	"github.com/stowage-dev/stowage/test/harness/guest"
)

const (
	// toolsDir is where Google's driver looks for programs of udev.
	toolsDir = "/usr/lib/udev_containerized"
	// scriptsDir has what stands in for them.
	scriptsDir = "test/e2e/manifests/csi-driver"
	// ubdMajor is the number of the devices of guests, of which each has 16 minors.
	ubdMajor, ubdMinors = 98, 16
)

// GoogleDriver is the node service of Google's driver on a node.
type GoogleDriver struct{ program *cluster.Program }

// GoogleFiles say how it is started, in paths of the machine's.
type GoogleFiles struct{ Node, Program, Repository, Devices string }

// Prepare gives the node what the driver needs: programs of udev, and devices by names of SCSI's.
func (*GoogleDriver) Prepare(request GoogleFiles, _ *guest.Nothing) error {
	if err := coverLibraries(filepath.Join(uml.MachineDir, request.Repository, scriptsDir)); err != nil {
		return err
	}
	for i := range 15 {
		path := fmt.Sprintf("/dev/sd%c", 'b'+i)
		if err := unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(ubdMajor, uint32(ubdMinors*(i+1))))); err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	return errors.Join(os.MkdirAll("/dev/disk/by-id", 0o755), os.MkdirAll(filepath.Dir(googlenode.Socket(guest.AgentRoot)), 0o755))
}

// coverLibraries adds the programs to a folder that the node can't write: another one with the same
// content covers it.
func coverLibraries(scripts string) error {
	const cover, covered = "/run/libraries", "/usr/lib"
	if _, err := os.Stat(toolsDir); err == nil {
		return nil
	}
	entries, err := os.ReadDir(covered)
	if err != nil {
		return err
	}
	tools := filepath.Join(cover, filepath.Base(toolsDir))
	if err := os.MkdirAll(tools, 0o755); err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.Symlink(filepath.Join(uml.MachineDir, covered, entry.Name()), filepath.Join(cover, entry.Name())); err != nil {
			return err
		}
	}
	for name, script := range map[string]string{"scsi_id": "scsi_id", "google_nvme_id": "scsi_id", "udevadm": "udevadm"} {
		if err := copyProgram(filepath.Join(scripts, script), filepath.Join(tools, name)); err != nil {
			return err
		}
	}
	return unix.Mount(cover, covered, "", unix.MS_BIND, "")
}

func copyProgram(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// Start starts it.
func (g *GoogleDriver) Start(request GoogleFiles, _ *guest.Nothing) error {
	g.program = cluster.NewProgram(cluster.ProgramOptions{
		Name: "gce-pd-csi-driver", Path: filepath.Join(uml.MachineDir, request.Program), LogFile: "/run/logs/gce-pd-csi-driver.log",
		Arguments: []string{
			"--endpoint=unix:" + googlenode.Socket(guest.AgentRoot), "--run-controller-service=false", "--node-name=" + request.Node, "--v=5",
		},
		Environment: []string{
			"GCE_METADATA_HOST=127.0.0.1" + googlenode.MetadataPort, "DEVICES=" + filepath.Join(uml.MachineDir, request.Devices),
			"PATH=" + toolsDir + ":" + os.Getenv("PATH"),
		},
	})
	return g.program.Start()
}

// Kill ends it as a crash does.
func (g *GoogleDriver) Kill(GoogleFiles, *guest.Nothing) error { return g.program.Kill() }
