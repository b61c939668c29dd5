package attach_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func row(node, mode string) string {
	return `{"attachments":{"` + node + `/devices/d":{"Instance":"` + node + `","Disk":"d","Mode":"` + mode + `"}}}` + "\n"
}

func gone(node string) string { return `{"attachments":{"` + node + `/devices/d":null}}` + "\n" }

func TestTheJournalTellsOfTwoWriters(t *testing.T) {
	for name, c := range map[string]struct {
		journal     string
		attachments int
		isWrong     bool
	}{
		"one after the other":   {row("a", readWrite) + gone("a") + row("b", readWrite), 2, false},
		"two at once":           {row("a", readWrite) + row("b", readWrite), 0, true},
		"a reader beside":       {row("a", readWrite) + row("b", "READ_ONLY"), 0, true},
		"two readers":           {row("a", "READ_ONLY") + row("b", "READ_ONLY"), 2, false},
		"the same again":        {row("a", readWrite) + row("a", readWrite), 1, false},
		"other tables":          {`{"disks":{"d":{}}}` + "\n" + row("a", readWrite), 1, false},
		"a line that is no row": {"{\n", 0, true},
	} {
		attachments, err := neverTwice(c.journal)
		if attachments != c.attachments || (err != nil) != c.isWrong {
			t.Errorf("%s: %d attachments, %v", name, attachments, err)
		}
	}
}

func TestADiskThatIsSharedMayHaveTwoWriters(t *testing.T) {
	journal := row("a", readWrite) + row("b", readWrite)
	if attachments, err := neverTwice(journal, "d"); attachments != 2 || err != nil {
		t.Errorf("%d attachments, %v", attachments, err)
	}
	if _, err := neverTwice(journal, "e"); err == nil {
		t.Error("another disk may have two")
	}
}

func TestARefusedAttachNamesTheInstanceThatHasTheDisk(t *testing.T) {
	const call = `{"method":"instances.attachDisk","path":"/compute/v1/projects/p/zones/z/instances/a/attachDisk","error":"`
	const inUse = "400 resourceInUseByAnotherResource: The disk resource 'd' is already being used by 'projects/p/zones/z/instances/"
	for name, c := range map[string]struct{ log, want string }{
		"by another":         {call + inUse + `b'"}`, "instances/b"},
		"by one like it":     {call + inUse + `ab'"}`, "instances/ab"},
		"by itself":          {call + inUse + `a'"}`, ""},
		"when its turn came": {`{"method":"instances.attachDisk","operation":"o","error":"400 resourceInUseByAnotherResource: x"}`, "400"},
		"another refusal":    {call + `503 backendError: busy"}`, ""},
		"no refusal":         {`{"method":"instances.attachDisk","path":"/compute/v1/projects/p/zones/z/instances/a/attachDisk","error":null}`, ""},
		"another call":       {`{"method":"disks.get"}`, "no attachment"},
	} {
		log := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(log, []byte(c.log+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := neverTried(log)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
