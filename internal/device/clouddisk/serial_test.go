package clouddisk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestTheSerialIsReadFromAScsiPage(t *testing.T) {
	for name, test := range map[string]struct{ page, want string }{
		"as it is":            {"\x00\x80\x00\x04pd-1", "pd-1"},
		"padded":              {"\x00\x80\x00\x08  pd-1  ", "pd-1"},
		"longer than it says": {"\x00\x80\x00\x02pd-1", "pd"},
		"cut off":             {"\x00\x80\x00\x0apd-1", "pd-1"},
		"another page":        {"\x00\x83\x00\x04pd-1", ""},
		"blank":               {"\x00\x80\x00\x02  ", ""},
		"no page":             {"\x00", ""},
	} {
		got, err := serialInPage([]byte(test.page))
		if got != test.want || (test.want == "") != errors.Is(err, errNoSerial) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestTheSerialIsReadFromUdevsDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b259:1")
	if _, err := serialInUdev(path); !errors.Is(err, errNoSerial) {
		t.Errorf("no entry gave %v", err)
	}
	const entry = "S:disk/by-id/google-data\nE:ID_MODEL=nvme_card-pd\nE:ID_SERIAL=Google_PersistentDisk_data\nE:ID_SERIAL_SHORT=data\n"
	if err := os.WriteFile(path, []byte(entry), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := serialInUdev(path); got != "data" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
