package cluster

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestProgramIsReadyKilledAndStartedAgain(t *testing.T) {
	program := newProgram(t, "echo started; exec sleep 100")
	var lives atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		if strings.Count(Tail(program.LogFile, 9), "started") != int(lives.Load()) {
			answer.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	program.probe = server.URL
	for range 2 {
		lives.Add(1)
		if err := program.Start(); err != nil {
			t.Fatal(err)
		}
		if err := program.AwaitReady(t.Context()); err != nil {
			t.Errorf("life %d: %v", lives.Load(), err)
		}
		if err := program.Kill(); err != nil {
			t.Errorf("killing life %d: %v", lives.Load(), err)
		}
		<-program.Ended()
	}
}

func TestAProgramThatEndsIsNotWaitedFor(t *testing.T) {
	program := newProgram(t, "echo no such luck; exit 3")
	program.probe = "http://127.0.0.1:1/readyz"
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := program.AwaitReady(ctx)
	if ctx.Err() != nil {
		t.Error("it was waited for until the end of time")
	}
	for _, part := range []string{"exit status 3", "no such luck", program.LogFile} {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Errorf("the error lacks %q: %v", part, err)
		}
	}
}

func newProgram(t *testing.T, script string) *Program {
	t.Helper()
	program := NewProgram(ProgramOptions{
		Name: "sample", LogFile: filepath.Join(t.TempDir(), "log"), Path: "/bin/sh", Arguments: []string{"-c", script},
	})
	t.Cleanup(func() { _ = program.Kill() })
	return program
}
