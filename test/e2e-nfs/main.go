// Command e2e-nfs is `make e2e-nfs`: the node agent's NFS mounts with a real kernel
// client and real servers. Two User Mode Linux guests are the nodes, nfs-ganesha is
// the servers; a server is stopped, frozen and started under load, and what the
// nodes see of it is checked.
//
// The same program plays three parts: it starts itself again with a network, mounts
// and processes of its own, which end with it whatever happens; there it boots the
// guests, whose first process it is, too.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/hack/uml"
	"github.com/stowage-dev/stowage/internal/mount"
)

// Parts that this program plays, named by its first argument.
const (
	insideArgument = "inside"
	nodeArgument   = "node"
	loadArgument   = "load"
)

// mostTime is how long all of it may take.
const mostTime = 5 * time.Minute

func main() {
	mount.ServeCall()
	if err := play(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e-nfs:", err)
		os.Exit(1)
	}
}

func play() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	switch {
	// A guest's kernel adds arguments of its own.
	case len(os.Args) >= 4 && os.Args[1] == nodeArgument:
		fmt.Println("node:", serveNode(os.Args[2], os.Args[3]))
		return uml.PowerOff()
	case len(os.Args) == 3 && os.Args[1] == loadArgument:
		return writeLines(os.Args[2])
	case len(os.Args) == 3 && os.Args[1] == insideArgument:
		return tell(ctx, os.Args[2])
	default:
		return runInside(ctx)
	}
}

// runInside runs this program with namespaces of its own. When it ends, so does all
// that it started, and nothing but the folder is left to remove.
func runInside(ctx context.Context) (err error) {
	folder, err := os.MkdirTemp("", "stowage-e2e-nfs-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	ctx, cancel := context.WithTimeout(ctx, mostTime)
	defer cancel()
	inside := exec.CommandContext(ctx, "/proc/self/exe", insideArgument, folder)
	inside.Stdout, inside.Stderr = os.Stdout, os.Stderr
	inside.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID,
		Setpgid:    true,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := inside.Run(); err != nil {
		return fmt.Errorf("the story didn't come to its end: %w", err)
	}
	return nil
}
