package holder_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/internal/holder"
)

// process makes what the kernel shows of a process. Names with a folder, and those of links, are
// links.
func process(t *testing.T, processes, pid string, files map[string]string) {
	t.Helper()
	for _, folder := range []string{"fd", "ns"} {
		if err := os.MkdirAll(filepath.Join(processes, pid, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if files["exe"] == "" && files["comm"] != "kthread\n" {
		files["exe"] = "/bin/busybox"
	}
	for name, content := range files {
		var err error
		path := filepath.Join(processes, pid, name)
		if strings.Contains(name, "/") || slices.Contains([]string{"cwd", "root", "exe"}, name) {
			err = os.Symlink(content, path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestHoldersAreNamedWithHowTheyHoldIt(t *testing.T) {
	elsewhere := "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
	mounted := elsewhere + "22 21 7:7 / /data rw - ext4 /dev/loop7 rw\n"
	for name, test := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"none":                   {map[string]string{"cwd": "/data2", "fd/3": "/datum", "ns/mnt": "mnt:[2]", "mountinfo": elsewhere}, nil},
		"an open file":           {map[string]string{"cmdline": "tail\x00-f\x00log\x00", "fd/3": "/data/log"}, []string{`process 42 ("tail -f log") has open /data/log`}},
		"a current folder":       {map[string]string{"cmdline": "bash\x00", "cwd": "/data"}, []string{`process 42 ("bash") is in the folder /data`}},
		"a root":                 {map[string]string{"comm": "pod\n", "root": "/data/root"}, []string{`process 42 ("pod") has the root /data/root`}},
		"a program":              {map[string]string{"comm": "x\n", "exe": "/data/x"}, []string{`process 42 ("x") runs /data/x`}},
		"a mount of its own":     {map[string]string{"comm": "pod\n", "ns/mnt": "mnt:[2]", "mountinfo": mounted}, []string{`process 42 ("pod") has it mounted at /data`}},
		"no kernel thread":       {map[string]string{"comm": "kthread\n", "ns/mnt": "mnt:[2]", "mountinfo": mounted}, nil},
		"a mount that was named": {map[string]string{"comm": "pod\n", "ns/mnt": "mnt:[1]", "mountinfo": mounted}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			processes := t.TempDir()
			process(t, processes, "17", map[string]string{"comm": "init\n", "ns/mnt": "mnt:[1]", "mountinfo": elsewhere})
			process(t, processes, "42", test.files)
			var got []string
			for h := range (holder.Thing{Path: "/data", Device: "7:7"}).Holders(processes) {
				got = append(got, h.String())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestALoopDeviceHoldsItsFile(t *testing.T) {
	devices := t.TempDir()
	for device, file := range map[string]string{"loop7": "/data/image (deleted)\n", "loop8": "/elsewhere\n"} {
		if err := os.MkdirAll(filepath.Join(devices, device, "loop"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(devices, device, "loop", "backing_file"), []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := maps.Collect(holder.Thing{Path: "/data"}.Loops(devices))
	if want := map[string]string{"loop7": "/data/image"}; !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestAProcessThatStandsInAFolderIsNamedInTheError(t *testing.T) {
	folder := t.TempDir()
	child := exec.Command("sleep", "1000")
	child.Dir = folder
	if err := child.Start(); err != nil {
		t.Skip("sleep can't be started:", err)
	}
	t.Cleanup(func() { _, _ = child.Process.Kill(), child.Wait() })

	busy := errors.New("busy")
	err := holder.Thing{Path: folder}.Explain(busy)
	if want := fmt.Sprintf("process %d (\"sleep 1000\") is in the folder %s", child.Process.Pid, folder); !errors.Is(err, busy) || !strings.Contains(err.Error(), want) {
		t.Errorf("want %q, got %v", want, err)
	}
	if err := (holder.Thing{Path: folder}).Explain(nil); err != nil {
		t.Errorf("without an error: %v", err)
	}
	if err := (holder.Thing{Path: folder + "/other"}).Explain(busy); !strings.Contains(err.Error(), "fuser -vm "+folder+"/other") {
		t.Errorf("without a holder: %v", err)
	}
}
