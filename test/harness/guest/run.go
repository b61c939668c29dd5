// Package guest has what end-to-end tests with kernels of their own need: nodes that
// are User Mode Linux guests, a network that nothing else is in, and a whole Stowage
// whose agents run on those nodes.
//
// A suite calls Main first. Its program plays several parts: it starts itself again
// with a network, mounts and processes of its own, which end with it whatever
// happens; there it runs the specs, and boots the guests, whose first process
// it is, too. What is proved is the suite's; this package knows nothing of it.
package guest

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
)

// Parts that a suite's program plays, named by its first argument.
const (
	insideArgument = "inside"
	nodeArgument   = "node"
	tidyArgument   = "tidy"
)

// lastWords is how long a test that is ended before its end may take to keep its logs.
const lastWords = time.Minute

func (s Suite) play() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	switch {
	// A guest's kernel adds arguments of its own.
	case len(os.Args) >= 5 && os.Args[1] == nodeArgument:
		fmt.Println("node:", s.serve(os.Args[2], os.Args[3], os.Args[4]))
		return uml.PowerOff()
	case len(os.Args) == 3 && os.Args[1] == tidyArgument:
		return Folder{os.Args[2]}.tidy(context.WithoutCancel(ctx))
	case len(os.Args) >= 3 && os.Args[1] == insideArgument:
		folder := Folder{os.Args[2]}
		if err := prepare(ctx, folder); err != nil {
			return err
		}
		return s.run(ctx, folder)
	default:
		return s.runApart(ctx)
	}
}

// runApart runs this program with namespaces of its own. When it ends, so does all
// that it started; what namespaces don't hold is tidied up, and nothing is left, but the
// logs of a test that failed.
func (s Suite) runApart(ctx context.Context) error {
	folder, err := newFolder(s.Name)
	if err != nil {
		return err
	}
	tidy, err := tidyLater(folder)
	if err != nil {
		return errors.Join(err, os.RemoveAll(folder.root))
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout+lastWords)
	defer cancel()
	inside := exec.CommandContext(ctx, "/proc/self/exe", append([]string{insideArgument, folder.root}, os.Args[2:]...)...)
	inside.Stdout, inside.Stderr = os.Stdout, os.Stderr
	// What it starts belongs to the folder.
	inside.Env = append(os.Environ(), "TMPDIR="+folder.caches())
	inside.WaitDelay = lastWords
	inside.Cancel = func() error {
		fmt.Printf("\n%s: ending it, which may take until all logs are kept\n", s.Name)
		return inside.Process.Signal(syscall.SIGTERM)
	}
	inside.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID,
		Setpgid:    true,
		Pdeathsig:  syscall.SIGKILL,
	}
	var failure error
	if err := inside.Run(); isFailure(err) {
		failure = fmt.Errorf("the test failed (%w); all logs are in %s", err, folder.Logs())
	}
	if err := errors.Join(failure, tidy()); err != nil {
		return err
	}
	return os.RemoveAll(folder.root)
}
