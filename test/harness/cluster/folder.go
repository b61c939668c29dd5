package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/stowage-dev/stowage/internal/holder"
)

const (
	// markerName is a file by which a cluster's folder is recognised.
	markerName = "this-is-a-stowage-folder"
	marker     = "The state of `make run`. Remove it with `make clean-run`, which unmounts first.\n"
)

// ErrRunning says that another program has the folder's cluster running.
var ErrRunning = errors.New("another `make run` is using it: stop that first")

// ErrForeign says that a folder holds something else than a cluster.
var ErrForeign = errors.New("there is something else in it")

// Folder is where a cluster keeps everything.
type Folder struct{ root string }

// NewFolder makes the folder if it is not there. It refuses one that holds
// something else.
func NewFolder(dir string) (Folder, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return Folder{}, fmt.Errorf("finding the folder %s: %w", dir, err)
	}
	folder := Folder{root}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return Folder{}, fmt.Errorf("making the folder of the cluster: %w", err)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return Folder{}, fmt.Errorf("reading the folder of the cluster: %w", err)
	}
	if len(entries) > 0 && !folder.isMarked() {
		return Folder{}, fmt.Errorf("using %s for a cluster: %w", root, ErrForeign)
	}
	return folder, folder.prepare()
}

func (f Folder) prepare() error {
	for _, dir := range []string{f.Disks(), f.AgentRoot(NodeName), f.AgentRoot(SecondNode), f.path("logs"), f.path("kubeconfigs")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making the folders of the cluster: %w", err)
		}
	}
	return f.write(markerName, []byte(marker))
}

// Root is the folder's own path, absolute.
func (f Folder) Root() string { return f.root }

// Disks is the base of all local volumes: --local-base of manager and agent.
func (f Folder) Disks() string { return f.path("disks") }

// AgentRoot is the own folder of the agent of a node of this machine, below which it mounts.
func (f Folder) AgentRoot(node string) string {
	if node == SecondNode {
		return f.path("agent-second")
	}
	return f.path("agent")
}

// Kubeconfig is the file with which a user reaches the API server.
func (f Folder) Kubeconfig(user string) string { return f.path("kubeconfigs", user) }

// Log is the file that a program logs to.
func (f Folder) Log(program string) string { return f.path("logs", program+".log") }

func (f Folder) path(parts ...string) string {
	return filepath.Join(append([]string{f.root}, parts...)...)
}

func (f Folder) isMarked() bool {
	_, err := os.Lstat(f.path(markerName))
	return err == nil
}

func (f Folder) write(name string, content []byte) error {
	return os.WriteFile(f.path(name), content, 0o600)
}

func (f Folder) createLog(program string) (*os.File, error) { return os.Create(f.Log(program)) }

// Lock keeps others from the folder until the file is closed, or this program
// ends in any way.
func (f Folder) Lock() (*os.File, error) {
	file, err := os.OpenFile(f.path("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the folder of the cluster: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = holder.Thing{Path: f.path("lock")}.Explain(ErrRunning)
		}
		return nil, fmt.Errorf("locking %s: %w", f.root, err)
	}
	return file, nil
}

// ports are remembered, so that a kubeconfig in a user's shell is good after a restart.
type ports struct{ APIServer, Etcd, Cloud int }

func (f Folder) ports() (ports, error) {
	var kept ports
	if content, err := os.ReadFile(f.path("ports")); err == nil {
		// What can't be read is chosen again.
		_ = json.Unmarshal(content, &kept)
	}
	var err error
	for _, port := range []*int{&kept.APIServer, &kept.Etcd, &kept.Cloud} {
		if *port, err = freePort(*port); err != nil {
			return ports{}, err
		}
	}
	content, err := json.Marshal(kept)
	if err != nil {
		return ports{}, err
	}
	return kept, f.write("ports", content)
}

// FreePort is a port of loopback on which no process listens.
func FreePort() (int, error) { return freePort(0) }

// FreeAddress is one of loopback, with a port, at which no process listens.
func FreeAddress() (string, error) {
	port, err := FreePort()
	return fmt.Sprintf("127.0.0.1:%d", port), err
}

// freePort is the wanted port of loopback if it is free, else another.
func freePort(wanted int) (int, error) {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", wanted))
	if err != nil && wanted != 0 {
		return freePort(0)
	}
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
