package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const serverConfig = `
NFS_CORE_PARAM { Protocols = 3, 4; NFS_Port = %[2]d; MNT_Port = %[3]d; Enable_NLM = false; Enable_RQUOTA = false; }
NFSv4 { Graceless = true; Only_Numeric_Owners = true; RecoveryBackend = fs; RecoveryRoot = "%[1]s/recovery"; }
EXPORT { Export_Id = 1; Path = %[1]s/share; Pseudo = %[1]s/share; Access_Type = RW; Squash = No_Root_Squash;
         SecType = sys; Protocols = 3, 4; Attr_Expiration_Time = 0; FSAL { Name = VFS; } }
`

// server is an NFS server: nfs-ganesha, at a port of its own.
type server struct {
	port    int
	folder  string
	process *exec.Cmd
}

// newServer prepares a server whose files are in a folder.
func newServer(port int, folder string) (*server, error) {
	made := &server{port: port, folder: folder}
	for _, dir := range []string{made.share(), filepath.Join(folder, "recovery")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	return made, os.WriteFile(made.file("ganesha.conf"), fmt.Appendf(nil, serverConfig, folder, port, port+mountdOffset), 0o600)
}

func (s *server) file(name string) string { return filepath.Join(s.folder, name) }

// share is the path of the export, here and for clients.
func (s *server) share() string { return s.file("share") }

// start starts the server, and waits until clients can connect.
func (s *server) start(ctx context.Context) error {
	s.process = exec.CommandContext(ctx, "ganesha.nfsd", "-F", "-f", s.file("ganesha.conf"), "-L", s.file("log"), "-p", s.file("pid"))
	started := make(chan error)
	go func() {
		// Never unlocked: the thread has a host name of its own, and ends with the
		// goroutine. Clients take servers of one host name for one server with two
		// addresses.
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWUTS)
		if err == nil {
			err = unix.Sethostname(fmt.Appendf(nil, "server-%d", s.port))
		}
		if err == nil {
			err = s.process.Start()
		}
		started <- err
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("starting nfs-ganesha: %w", err)
	}
	dialer := net.Dialer{Timeout: time.Second}
	return eventually(ctx, func() error {
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(serverAddress, strconv.Itoa(s.port)))
		if err != nil {
			return fmt.Errorf("waiting for nfs-ganesha: %w", err)
		}
		return conn.Close()
	})
}

// kill ends the server as a crash does.
func (s *server) kill() error {
	if err := s.process.Process.Kill(); err != nil {
		return err
	}
	_ = s.process.Wait() // it was killed
	return nil
}

// freeze makes the server silent, and thaw lets it go on.
func (s *server) freeze() error { return s.process.Process.Signal(syscall.SIGSTOP) }
func (s *server) thaw() error   { return s.process.Process.Signal(syscall.SIGCONT) }

// prepare makes a machine of this process's namespaces: places that servers write
// to, and a network with an address for each server and a link for each node.
func prepare(ctx context.Context, folder string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("parting from the machine's mounts: %w", err)
	}
	for target, kind := range map[string]string{"/proc": "proc", "/run": "tmpfs", folder: "tmpfs"} {
		if err := unix.Mount(kind, target, kind, 0, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", target, err)
		}
	}
	for _, made := range []string{"/run/rpcbind", "/run/ganesha"} {
		if err := os.MkdirAll(made, 0o755); err != nil {
			return err
		}
	}
	commands := []string{
		"ip link set lo up",
		"ip address add " + serverAddress + "/32 dev lo",
		"rpcbind -w",
	}
	for n := 1; n <= nodes; n++ {
		tap := tapOf(n)
		commands = append(commands, "ip tuntap add dev "+tap+" mode tap", "ip address add "+gatewayOf(n)+"/24 dev "+tap, "ip link set "+tap+" up")
	}
	for _, command := range commands {
		words := strings.Fields(command)
		if output, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, output)
		}
	}
	return nil
}
