package killpoint_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stowage-dev/stowage/test/harness/killpoint"
)

// busyStarter has the thread that starts a command make watched calls of its own, as Go's runtime may: exec asks a context,
// the last time once the command runs, whether it can end.
type busyStarter struct {
	context.Context
	folder string
}

func (b *busyStarter) Done() <-chan struct{} {
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
		_ = os.WriteFile(filepath.Join(b.folder, "started"), nil, 0o600)
	}
	return b.Context.Done()
}

func TestAProgramIsKilledWhileItsStarterMakesCallsOfItsOwn(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("NOT RUN: needs root")
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	command := exec.CommandContext(&busyStarter{ctx, t.TempDir()}, "mkdir", "a")
	command.Dir = t.TempDir()
	killed := false
	ended := make(chan error, 1)
	go func() {
		var err error
		_, killed, err = killpoint.Run(command, 1)
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil || !killed {
			t.Errorf("it was killed: %v, %v", killed, err)
		}
	case <-ctx.Done():
		t.Fatal("it waits forever")
	}
}
