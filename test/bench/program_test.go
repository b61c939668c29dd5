package main

import (
	"strings"
	"testing"
	"time"
)

func TestProcessesAreMeasuredWhileTheyRun(t *testing.T) {
	b := &testbed{dir: t.TempDir()}
	running, err := b.start(contender{name: "one", command: []string{"sleep", "60"}}, contender{name: "other", command: []string{"sleep", "60"}})
	if err != nil {
		t.Fatal(err)
	}
	used, err := running.usage()
	if err != nil || used.peak == 0 || len(used.each) != 2 {
		t.Errorf("used %+v, %v", used, err)
	}
	if err := running.alive(); err != nil {
		t.Errorf("they run: %v", err)
	}
	running.stop()
	if _, err := running.usage(); err == nil {
		t.Error("the usage of a process that is gone is no error")
	}
}

func TestAProcessThatEndsIsNamedWithItsLog(t *testing.T) {
	b := &testbed{dir: t.TempDir()}
	running, err := b.start(contender{name: "short", command: []string{"sh", "-c", "echo $WHY"}, environment: []string{"WHY=no reason"}})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-running[0].Ended():
	case <-time.After(time.Minute):
		t.Fatal("it doesn't end")
	}
	if err := running.alive(); err == nil || !strings.Contains(err.Error(), "short ended") || !strings.Contains(err.Error(), "no reason") {
		t.Errorf("it ended, and the error is %v", err)
	}
}

func TestNothingRunsWhereOneCannotStart(t *testing.T) {
	b := &testbed{dir: t.TempDir()}
	if running, err := b.start(contender{name: "one", command: []string{"sleep", "60"}}, contender{name: "none", command: []string{"/no/such/program"}}); err == nil || running != nil {
		t.Errorf("started %v, %v", running, err)
	}
}
