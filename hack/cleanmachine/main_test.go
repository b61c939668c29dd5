package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestWhatACommandStartedEndsWithTheCommand(t *testing.T) {
	note := filepath.Join(t.TempDir(), "pid")
	// Outside the folder of `make test`: in that, what runs belongs to others, too.
	t.Setenv("TMPDIR", "/tmp")
	ended := make(chan int, 1)
	go func() { ended <- run([]string{"sh", "-c", "sleep 1000 & echo $! >" + note + "; wait"}) }()
	pid := 0
	until(t, "it starts", func() bool {
		content, _ := os.ReadFile(note)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(content)))
		return pid > 0
	})

	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}

	if status := <-ended; status == 0 {
		t.Error("a command that got SIGTERM had success")
	}
	until(t, "what it started ends", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	const patience, tick = 10 * time.Second, 10 * time.Millisecond
	for end := time.Now().Add(patience); !holds(); {
		if time.Now().After(end) {
			t.Fatalf("it doesn't hold that %s", what)
		}
		<-time.After(tick)
	}
}
