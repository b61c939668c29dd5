// Command cleanmachine removes what tests that were killed left on this machine. With a
// command as its arguments it runs that, with a temporary folder by which all that the
// command leaves is found later.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stowage-dev/stowage/test/harness/leftovers"
	"github.com/stowage-dev/stowage/test/harness/owned"
)

// patience is how long what a command left has to end.
const patience = 30 * time.Second

func main() {
	dryRun := flag.Bool("dry-run", false, "Remove nothing, and say what would be removed.")
	root := flag.String("dir", os.TempDir(), "Folder that has the folders of tests.")
	flag.Parse()
	if flag.NArg() > 0 {
		os.Exit(run(flag.Args()))
	}
	cleaner := leftovers.Cleaner{Root: *root, DryRun: *dryRun, Output: os.Stdout}
	if err := cleaner.Clean(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "clean-machine:", err)
		os.Exit(1)
	}
}

// run returns the exit status of a command, which gets the terminal's signals itself, and
// others from here. What a command that gets such a signal leaves running is ended, too.
func run(command []string) int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	outer := os.TempDir()
	remove, err := owned.Temporary("t")
	if err != nil {
		fmt.Fprintln(os.Stderr, "making a temporary folder:", err)
		return 1
	}
	isOurs := os.TempDir() != outer
	child := exec.Command(command[0], command[1:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	var isCutOff atomic.Bool
	if err = child.Start(); err == nil {
		go func() {
			for received := range signals {
				isCutOff.Store(true)
				if received == syscall.SIGTERM {
					_ = child.Process.Signal(received) // an error says that it has ended
				}
			}
		}()
		err = child.Wait()
	}
	if isCutOff.Load() && isOurs {
		endAll(os.TempDir())
	}
	if failure := remove(); failure != nil {
		fmt.Fprintln(os.Stderr, "removing the temporary folder:", failure)
	}
	if status := child.ProcessState.ExitCode(); err == nil || status > 0 {
		return status
	}
	fmt.Fprintln(os.Stderr, command[0]+":", err)
	return 1
}

// endAll ends what the command started, and removes what that mounted and attached. Without its folder, nothing would
// say any more whose it is.
func endAll(folder string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := leftovers.Detach(ctx, folder); err != nil {
		fmt.Fprintln(os.Stderr, "ending what the command left:", err)
	}
}
