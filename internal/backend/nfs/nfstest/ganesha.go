package nfstest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Shares that a Ganesha exports, below its folder.
const (
	// Volumes is for root to use as root, from ports below 1024.
	Volumes = "volumes"
	// Squashed makes Anonymous of root, and only of root.
	Squashed = "squashed"
	// Fixed is read-only.
	Fixed = "fixed"
)

const ganeshaConfig = `
NFS_CORE_PARAM { Protocols = 3, 4; MNT_Port = 20048; Enable_NLM = false; Enable_RQUOTA = false; }
NFSv4 { Graceless = true; RecoveryBackend = fs; }
EXPORT_DEFAULTS { Protocols = 3, 4; SecType = sys; Access_Type = RW; Squash = No_Root_Squash; Attr_Expiration_Time = 0; }
EXPORT { Export_Id = 1; Path = %[1]s/volumes; Pseudo = /volumes; PrivilegedPort = true; FSAL { Name = VFS; } }
EXPORT { Export_Id = 2; Path = %[1]s/squashed; Pseudo = /squashed; Squash = Root_Squash;
         Anonymous_Uid = 65534; Anonymous_Gid = 65534; FSAL { Name = VFS; } }
EXPORT { Export_Id = 3; Path = %[1]s/fixed; Pseudo = /fixed; Access_Type = RO; FSAL { Name = VFS; } }
`

// ganeshaPrograms are what Debian's packages nfs-ganesha, nfs-ganesha-vfs and
// rpcbind bring.
var ganeshaPrograms = []string{"ganesha.nfsd", "rpcbind"}

// MissingForGanesha returns what this machine lacks to run a Ganesha: "" for nothing.
func MissingForGanesha() string {
	if os.Getuid() != 0 {
		return "root"
	}
	for _, name := range ganeshaPrograms {
		if _, err := exec.LookPath(name); err != nil {
			return name + " (Debian: nfs-ganesha nfs-ganesha-vfs rpcbind)"
		}
	}
	return ""
}

// Apart makes a command run with mounts, network and processes of its own. All mounts and processes
// that it makes end with it.
func Apart(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
}

// Ganesha is a real server: nfs-ganesha, with rpcbind.
type Ganesha struct {
	*exec.Cmd
}

// StartGanesha exports the shares below a folder, over which it mounts a tmpfs. It
// is to be called in a process that was started Apart.
func StartGanesha(ctx context.Context, folder string) (*Ganesha, error) {
	if err := prepare(folder); err != nil {
		return nil, err
	}
	config := filepath.Join(folder, "ganesha.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, ganeshaConfig, folder), 0o600); err != nil {
		return nil, err
	}
	if err := exec.CommandContext(ctx, "rpcbind", "-w").Run(); err != nil {
		return nil, fmt.Errorf("starting rpcbind: %w", err)
	}
	server := exec.CommandContext(ctx, "ganesha.nfsd", "-F", "-f", config, "-L", filepath.Join(folder, "ganesha.log"), "-p", "/run/ganesha.pid")
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("starting nfs-ganesha: %w", err)
	}
	return &Ganesha{server}, nil
}

// Freeze stops the server where it is, and returns once it is.
func (g *Ganesha) Freeze() error {
	if err := g.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return unix.Waitid(unix.P_PID, g.Process.Pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil)
}

// Thaw lets a frozen server go on.
func (g *Ganesha) Thaw() error { return g.Process.Signal(syscall.SIGCONT) }

// prepare makes the directories that the servers write to, in mounts of our own.
func prepare(folder string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("parting from the machine's mounts: %w", err)
	}
	for target, kind := range map[string]string{"/proc": "proc", "/run": "tmpfs", "/var/lib": "tmpfs", folder: "tmpfs"} {
		if err := unix.Mount(kind, target, kind, 0, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", target, err)
		}
	}
	for _, made := range []string{
		"/run/rpcbind", "/run/ganesha", "/var/lib/nfs/ganesha",
		filepath.Join(folder, Volumes), filepath.Join(folder, Squashed), filepath.Join(folder, Fixed),
	} {
		if err := os.MkdirAll(made, 0o755); err != nil {
			return err
		}
	}
	if err := os.Chown(filepath.Join(folder, Squashed), Anonymous, Anonymous); err != nil {
		return err
	}
	return LoopbackUp()
}

// LoopbackUp sets up the loopback interface of a network that is new, as that of a process that was started Apart is.
func LoopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("setting the loopback interface up: %w", err)
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("setting the loopback interface up: %w", err)
	}
	return nil
}
