package killpoint_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stowage-dev/stowage/test/harness/killpoint"
)

// script is five steps: a folder, a file, what it holds, its mode, and its name.
const script = `set -e
mkdir a
echo hello >a/b
chmod 600 a/b
mv a/b a/c`

func run(t *testing.T, before int) (dir string, steps int, killed bool) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("NOT RUN: needs root")
	}
	command := exec.CommandContext(t.Context(), "sh", "-c", script)
	command.Dir = t.TempDir()
	steps, killed, err := killpoint.Run(command, before)
	if err != nil {
		t.Fatal(err)
	}
	return command.Dir, steps, killed
}

func exists(t *testing.T, path ...string) bool {
	t.Helper()
	_, err := os.Lstat(filepath.Join(path...))
	return err == nil
}

func TestAProgramThatIsNotKilledTakesAllItsSteps(t *testing.T) {
	dir, steps, killed := run(t, killpoint.Never)
	if killed || !exists(t, dir, "a/c") {
		t.Error("it was killed")
	}
	if steps != 5 {
		t.Errorf("it took %d steps", steps)
	}
}

func TestWhatAProgramStartsIsWatchedAndFinishes(t *testing.T) {
	dir, _, killed := run(t, 4)
	if !killed {
		t.Error("it wasn't killed")
	}
	// The step before which the shell was killed was that of chmod.
	if content, err := os.ReadFile(filepath.Join(dir, "a", "b")); string(content) != "hello\n" {
		t.Errorf("it wrote %q (%v)", content, err)
	}
	if exists(t, dir, "a/c") {
		t.Error("it went on")
	}
}

func TestTheStepBeforeWhichAProgramIsKilledIsNotTaken(t *testing.T) {
	if dir, steps, _ := run(t, 2); steps != 2 || !exists(t, dir, "a") || exists(t, dir, "a/b") {
		t.Errorf("it was killed before step %d of 2", steps)
	}
	dir, _, _ := run(t, 3)
	if info, err := os.Stat(filepath.Join(dir, "a", "b")); err != nil || info.Size() > 0 {
		t.Errorf("it has %v (%v)", info, err)
	}
}

func TestAProgramThatFailsIsAnError(t *testing.T) {
	if _, _, err := killpoint.Run(exec.CommandContext(t.Context(), "false"), killpoint.Never); err == nil {
		t.Error("it is a success")
	}
	if _, _, err := killpoint.Run(exec.CommandContext(t.Context(), "/nowhere/to/be/found"), killpoint.Never); err == nil {
		t.Error("what doesn't exist is a success")
	}
}
