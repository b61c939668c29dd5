package loopdev

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/internal/holder"
)

// process makes what the kernel shows of a process.
func process(t *testing.T, proc, pid string, files map[string]string) {
	t.Helper()
	for _, folder := range []string{"fd", "ns"} {
		if err := os.MkdirAll(filepath.Join(proc, pid, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	files["exe"] = "/bin/busybox"
	for name, content := range files {
		var err error
		path := filepath.Join(proc, pid, name)
		if strings.Contains(name, "/") || name == "exe" {
			err = os.Symlink(content, path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAProcessThatKeepsALoopDeviceIsNamed(t *testing.T) {
	device := holder.Thing{Path: "/dev/loop7", Device: "7:7"}
	others := "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
	for name, test := range map[string]struct {
		files map[string]string
		says  string
	}{
		"open": {map[string]string{"comm": "fs\"ck\n", "fd/3": "/dev/loop7", "ns/mnt": "mnt:[1]", "mountinfo": others}, `process 42 ("fs\"ck") has it open`},
		"mounted": {
			map[string]string{"comm": "pod\n", "fd/3": "/dev/loop1", "ns/mnt": "mnt:[2]", "mountinfo": others + "22 21 7:7 / /data rw - ext4 /dev/loop7 rw\n"},
			`process 42 ("pod") has it mounted at "/data": unmount it there`,
		},
		"neither": {map[string]string{"comm": "pod\n", "fd/3": "/dev/loop70", "ns/mnt": "mnt:[2]", "mountinfo": others}, "'fuser -v /dev/loop7' on the node"},
	} {
		t.Run(name, func(t *testing.T) {
			proc := t.TempDir()
			process(t, proc, "7", map[string]string{"comm": "init\n", "ns/mnt": "mnt:[1]", "mountinfo": others})
			process(t, proc, "42", test.files)
			if got := explain(device, proc); !strings.Contains(got, test.says) {
				t.Errorf("got %s", got)
			}
		})
	}
}
