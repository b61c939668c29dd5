package guest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/test/harness/scenario"
)

const serverConfig = `
NFS_CORE_PARAM { Protocols = 3, 4; NFS_Port = %[2]d; MNT_Port = %[3]d; Enable_NLM = false; Enable_RQUOTA = false; }
NFSv4 { Graceless = true; Only_Numeric_Owners = true; RecoveryBackend = fs; RecoveryRoot = "%[1]s/recovery"; }
EXPORT { Export_Id = 1; Path = %[1]s/share; Pseudo = %[1]s/share; Access_Type = RW; Squash = No_Root_Squash;
         SecType = sys; Protocols = 3, 4; Attr_Expiration_Time = 0; FSAL { Name = VFS; } }
`

// mountdOffset is what the port of a server's mountd is above its own.
const mountdOffset = 18000

// NFSServer is an NFS server: nfs-ganesha, at a port of its own and at Address. It ends
// with the test.
type NFSServer struct {
	port        int
	folder, log string
	process     *exec.Cmd
}

// NewNFSServer prepares a server whose files are in the machine's memory.
func NewNFSServer(port int, folder Folder) (*NFSServer, error) {
	name := "server-" + strconv.Itoa(port)
	made := &NFSServer{port: port, folder: filepath.Join(folder.Memory(), name), log: folder.Log(name)}
	for _, dir := range []string{made.Share(), made.file("recovery")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	return made, os.WriteFile(made.file("ganesha.conf"), fmt.Appendf(nil, serverConfig, made.folder, port, port+mountdOffset), 0o600)
}

func (s *NFSServer) file(name string) string { return filepath.Join(s.folder, name) }

// Share is the path of the export, here and for clients.
func (s *NFSServer) Share() string { return s.file("share") }

// PortOption is the mount option that says where NFS is served.
func (s *NFSServer) PortOption() string { return fmt.Sprintf("port=%d", s.port) }

// MountdOption is the one that says where mountd is, for NFSv3.
func (s *NFSServer) MountdOption() string { return fmt.Sprintf("mountport=%d", s.port+mountdOffset) }

// Start starts the server, and waits until clients can connect.
func (s *NFSServer) Start(ctx context.Context) error {
	// The server outlives the step that starts it: it ends with the test.
	s.process = exec.Command("ganesha.nfsd", "-F", "-f", s.file("ganesha.conf"), "-L", s.log, "-p", s.file("pid"))
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
	return scenario.Eventually(ctx, func() error {
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(Address, strconv.Itoa(s.port)))
		if err != nil {
			return fmt.Errorf("waiting for nfs-ganesha: %w", err)
		}
		return conn.Close()
	})
}

// Kill ends the server as a crash does.
func (s *NFSServer) Kill() error {
	if err := s.process.Process.Kill(); err != nil {
		return err
	}
	_ = s.process.Wait() // it was killed
	return nil
}

// Freeze makes the server silent.
func (s *NFSServer) Freeze() error { return s.process.Process.Signal(syscall.SIGSTOP) }

// Thaw lets it go on.
func (s *NFSServer) Thaw() error { return s.process.Process.Signal(syscall.SIGCONT) }

// PrepareNFS makes what NFS servers need of the machine.
func PrepareNFS(ctx context.Context) error {
	for _, dir := range []string{"/run/rpcbind", "/run/ganesha"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return Commands(ctx, "rpcbind -w")
}
