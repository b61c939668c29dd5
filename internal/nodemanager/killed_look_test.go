package nodemanager

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
)

// passing is what differs from one start to the next, and may: when files were written,
// and which loop device was free.
var passing = regexp.MustCompile(`\.\.\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\.\d+|"minor": \d+|/loop\d+`)

// look is all that there is of the node's pod, a line for each: what is mounted, loop
// devices, and files with what they hold and whose they are.
func (n *killedNode) look(t *testing.T) []string {
	t.Helper()
	lines := slices.Concat(n.mounts(t), n.loops(t), n.files(t))
	for i, line := range lines {
		lines[i] = passing.ReplaceAllString(line, "*")
	}
	slices.Sort(lines)
	return lines
}

func (n *killedNode) mounts(t *testing.T) []string {
	t.Helper()
	table, err := mount.Kernel{}.Table()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, point := range table.Below(n.Dir) {
		lines = append(lines, fmt.Sprintf("mounted: %s on %s, %s, access %d", point.Root, point.Path, point.FSType, point.Access))
	}
	return lines
}

// loops are the loop devices of the node's images, also of images that lost their names.
func (n *killedNode) loops(t *testing.T) []string {
	t.Helper()
	devices, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, of := range devices {
		// One that cannot be read was detached after the listing: it is another process's.
		if file, err := os.ReadFile(of); err == nil && strings.HasPrefix(string(file), n.Dir+"/") {
			lines = append(lines, "loop device of "+strings.TrimSpace(string(file)))
		}
	}
	return lines
}

func (n *killedNode) files(t *testing.T) []string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(n.Dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		line, err := describe(path)
		lines = append(lines, line)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func describe(path string) (string, error) {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return "", err
	}
	line := fmt.Sprintf("%s: mode %o, user %d, group %d", path, stat.Mode, stat.Uid, stat.Gid)
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		to, err := os.Readlink(path)
		return line + ", to " + to, err
	case unix.S_IFREG:
		if stat.Size >= imageBytes {
			return line, nil
		}
		holds, err := os.ReadFile(path)
		return line + ", holds " + string(holds), err
	default:
		return line, nil
	}
}

// mustBe fails unless the node looks like that.
func (n *killedNode) mustBe(t *testing.T, wanted []string, when string) {
	t.Helper()
	mustBeSame(t, n.look(t), wanted, when)
}

func mustBeSame(t *testing.T, got, wanted []string, when string) {
	t.Helper()
	for _, line := range got {
		if i, found := slices.BinarySearch(wanted, line); found {
			wanted = slices.Delete(slices.Clone(wanted), i, i+1)
			continue
		}
		t.Errorf("%s: too much: %s", when, line)
	}
	for _, line := range wanted {
		t.Errorf("%s: missing: %s", when, line)
	}
	if t.Failed() {
		t.FailNow()
	}
}
