package remote

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stowage-dev/stowage/internal/mount"
)

// A call that hangs is one that was stopped: it ends when it is killed, and not before.
func TestACallKeepsItsSlotUntilItsProcessIsGone(t *testing.T) {
	slots := &Slots{}
	at, err := slots.acquire(t.Context(), peer{"a", "a"}, toMount, false)
	if err != nil {
		t.Fatal(err)
	}
	begun, started := &call{slot: at, gone: make(chan struct{})}, make(chan error)
	go begun.run(`{"Ask":true,"Target":"/"}`, true, started)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	<-begun.gone
	if begun.err != nil {
		t.Error(begun.err)
	}
	// The slot is released last, after the call is known to be over.
	for deadline := time.After(10 * time.Second); ; {
		slots.mu.Lock()
		running, ended := slots.running, slots.nextEnd()
		slots.mu.Unlock()
		if running == 0 {
			return
		}
		select {
		case <-ended:
		case <-deadline:
			t.Fatalf("%d slots are taken", running)
		}
	}
}

func TestARefusedCallReturnsTheKernelsError(t *testing.T) {
	if _, err := parseRequest(`{"Ask":true,"Target":"/","New":1}`); err == nil || !strings.Contains(err.Error(), "version") {
		t.Errorf("got %v", err)
	}
	full := &Slots{}
	for range toAsk.server {
		at, err := full.acquire(t.Context(), peer{"overlay", "overlay"}, toAsk, false)
		if err != nil {
			t.Fatal(err)
		}
		at.of.servers["overlay"].begun[at] = time.Now().Add(-time.Hour)
	}
	table, err := mount.Kernel{}.Table()
	if err != nil {
		t.Fatal(err)
	}
	own := request{Ask: true, Target: "/"}.peer(table)
	full.servers[own.key] = full.servers["overlay"]
	calls := Calls{AnswerTimeout: time.Minute, Slots: full}
	if _, err := calls.answers(t.Context(), "/"); !errors.Is(err, ErrBusy) {
		t.Errorf("asking gave %v", err)
	}
	if _, err := calls.Unmount(t.Context(), "/"); !errors.Is(err, ErrBusy) {
		t.Errorf("unmounting gave %v", err)
	}
}

func TestTheProgramOfCallsIsFoundBesideTheOneThatStartsIt(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if got := programOfCalls(); got != "/proc/self/exe" || HasProgram() {
		t.Fatalf("without it, it is %s", got)
	}
	beside := filepath.Join(filepath.Dir(self), callName)
	if err := os.WriteFile(beside, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(beside) })
	if got := programOfCalls(); got != beside || !HasProgram() {
		t.Errorf("it is %s", got)
	}
}
