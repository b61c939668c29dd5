package guest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/stowage-dev/stowage/test/harness/cluster"
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

// startServer gives a server a host name of its own: clients take servers of one name for one
// server with two addresses.
const startServer = `hostname "$1" && exec ganesha.nfsd -F -f "$2/ganesha.conf" -L "$3" -p "$2/pid"`

// NFSServer is an NFS server: nfs-ganesha, at a port of its own and at Address. It can be
// killed and started again, and ends with the test.
type NFSServer struct {
	*cluster.Program
	port   int
	folder string
}

// NewNFSServer prepares a server whose files are in the machine's memory.
func NewNFSServer(port int, folder Folder) (*NFSServer, error) {
	name := "server-" + strconv.Itoa(port)
	made := &NFSServer{port: port, folder: filepath.Join(folder.Memory(), name)}
	made.Program = cluster.NewProgram(cluster.ProgramOptions{
		Name: name, LogFile: folder.Log(name), Path: "/usr/bin/unshare",
		Arguments: []string{"--uts", "sh", "-c", startServer, "sh", name, made.folder, folder.Log(name)},
	})
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
	if err := s.Program.Start(); err != nil {
		return err
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

// Freeze makes the server silent.
func (s *NFSServer) Freeze() error { return syscall.Kill(s.PID(), syscall.SIGSTOP) }

// Thaw lets it go on.
func (s *NFSServer) Thaw() error { return syscall.Kill(s.PID(), syscall.SIGCONT) }

// PrepareNFS makes what NFS servers need of the machine.
func PrepareNFS(ctx context.Context) error {
	for _, dir := range []string{"/run/rpcbind", "/run/ganesha"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return Commands(ctx, "rpcbind -w")
}
