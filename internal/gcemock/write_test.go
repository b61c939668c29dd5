package gcemock_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/gcemock"
)

// full makes nothing be written any more, and returns what ends that.
func full(t *testing.T, set gcemock.Options) (free func()) {
	t.Helper()
	fillJournal(t, filepath.Join(set.Folder, "state.jsonl"))
	obstacle := filepath.Join(set.Folder, "state.jsonl.new")
	if err := os.Mkdir(obstacle, 0o700); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(obstacle); err != nil {
			t.Fatal(err)
		}
	}
}

// fillJournal makes every further line of a journal fail to be written, as on a disk without space.
func fillJournal(t *testing.T, path string) {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	opened, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range opened {
		number, err := strconv.Atoi(each.Name())
		target, _ := os.Readlink("/proc/self/fd/" + each.Name())
		if err != nil || target != path {
			continue
		}
		if err := unix.Dup3(int(full.Fd()), number, unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("%s isn't open", path)
}

func TestAnOperationThatCouldNotBeWrittenEndsAllTheSame(t *testing.T) {
	set := options(t)
	c := open(t, set)
	free := full(t, set)
	_, err := insertData(c)
	c.refused(err, http.StatusInternalServerError, "internalError")

	free()
	c.ended(insertData(c))
	c.stop()
	c = open(t, set)
	c.allEnd()
	c.checkInvariants()
}

func TestWhatCouldNotBeWrittenIsWrittenWithWhatComesNext(t *testing.T) {
	set := options(t)
	c := open(t, set)
	c.makeInstance("node")
	c.makeDisk("data")
	free := full(t, set)
	_, err := c.attach("node", "data", "READ_WRITE").Do()
	c.refused(err, http.StatusInternalServerError, "internalError")
	c.allEnd()

	free()
	c.makeDisk("more")
	c.done(c.attach("node", "data", "READ_WRITE").Do())
	c.stop()
	c = open(t, set)
	c.allEnd()
	c.checkInvariants()
	if users := c.disk("data").Users; len(users) != 1 {
		t.Errorf("the disk is used by %v", users)
	}
}

func TestAFailureToOpenLeavesWhatCanBeOpened(t *testing.T) {
	now := time.Now()
	set := options(t)
	set.Now = func() time.Time { return now }
	c := open(t, set)
	c.makeDisk("data")
	c.stop()
	state := filepath.Join(set.Folder, "state.jsonl")
	written, err := os.ReadFile(state)
	if err == nil {
		err = os.WriteFile(state, append(written, `{"disks":{"projects/demo`...), 0o600)
	}
	if err == nil {
		err = os.Mkdir(state+".new", 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(48 * time.Hour) // old operations are forgotten
	if opened, err := gcemock.New(t.Context(), set); err == nil {
		t.Fatalf("it was opened: %v", opened.Close())
	}
	if err := os.Remove(state + ".new"); err != nil {
		t.Fatal(err)
	}
	c = open(t, set)
	c.disk("data")
}

func TestNothingIsWrittenOnceItIsClosed(t *testing.T) {
	set := options(t)
	c := open(t, set)
	late := c.mock
	c.makeDisk("data")
	c.stop()
	c = open(t, set)
	c.makeDisk("more")

	request := httptest.NewRequest(http.MethodPost, "/compute/v1/projects/"+project+"/zones/"+zone+"/disks",
		strings.NewReader(`{"name":"late","sizeGb":"10"}`))
	answer := httptest.NewRecorder()
	late.ServeHTTP(answer, request)

	if answer.Code != http.StatusServiceUnavailable {
		t.Errorf("it answers %d %s", answer.Code, answer.Body)
	}
	c.stop()
	c = open(t, set)
	c.disk("more")
	_, err := c.Disks.Get(project, zone, "late").Do()
	c.refused(err, http.StatusNotFound, "notFound")
}
