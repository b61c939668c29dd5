package mount

import (
	"slices"
	"strings"
	"testing"

	mountutils "k8s.io/mount-utils"
)

// aTable has a root, a disk, a bind mount of a folder of that disk and one over
// it, and a mount below that.
const aTable = `23 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 23 8:2 / /disk rw shared:2 master:1 - xfs /dev/sdb rw,attr2
40 23 8:2 /a\040b/c /pods/x ro,relatime - xfs /dev/sdb rw
41 40 8:2 /other /pods/x rw - xfs /dev/sdb rw
42 41 0:50 / /pods/x/in\012side rw - tmpfs tmp\134fs rw
43 23 8:2 /gone//deleted /pods/xy rw - xfs /dev/sdb rw
`

func TestATableIsRead(t *testing.T) {
	tests := map[string]struct {
		line string
		want Point
	}{
		"a plain mount": {
			"30 23 8:2 / /disk rw shared:2 master:1 - xfs /dev/sdb rw,attr2",
			Point{ID: 30, Parent: 23, Device: "8:2", Root: "/", Path: "/disk", FSType: "xfs", Source: "/dev/sdb", Group: 2, Master: 1},
		},
		"read-only": {
			"40 23 8:2 /c /pods/x ro,relatime - xfs /dev/sdb rw",
			Point{ID: 40, Parent: 23, Device: "8:2", Root: "/c", Path: "/pods/x", FSType: "xfs", Source: "/dev/sdb", Access: ReadOnly},
		},
		"one that stops being written after errors": {
			"30 23 7:1 / /disk rw - ext4 /dev/loop1 rw,errors=remount-ro",
			Point{ID: 30, Parent: 23, Device: "7:1", Root: "/", Path: "/disk", FSType: "ext4", Source: "/dev/loop1", StopsOnErrors: true},
		},
		"a read-only file system, mounted to be written": {
			"40 23 8:2 /c /pods/x rw,relatime - xfs /dev/sdb ro",
			Point{ID: 40, Parent: 23, Device: "8:2", Root: "/c", Path: "/pods/x", FSType: "xfs", Source: "/dev/sdb", SystemAccess: ReadOnly},
		},
		"space, tab, newline and backslash": {
			`1 0 8:2 /a\040b /\011c\012d\134e rw - xfs a\040b rw`,
			Point{ID: 1, Device: "8:2", Root: "/a b", Path: "/\tc\nd\\e", FSType: "xfs", Source: "a b"},
		},
		"a backslash and digits that are no escape of the kernel's": {
			`1 0 8:2 / /a\134040 rw - xfs x rw`,
			Point{ID: 1, Device: "8:2", Root: "/", Path: `/a\040`, FSType: "xfs", Source: "x"},
		},
		"what only Unicode calls space": {
			"1 0 8:2 / /a\u00a0b\u2003c rw - xfs x rw",
			Point{ID: 1, Device: "8:2", Root: "/", Path: "/a\u00a0b\u2003c", FSType: "xfs", Source: "x"},
		},
		"a source that was removed": {
			"43 23 8:2 /gone//deleted /pods/xy rw - xfs /dev/sdb rw",
			Point{ID: 43, Parent: 23, Device: "8:2", Root: "/gone", RootDeleted: true, Path: "/pods/xy", FSType: "xfs", Source: "/dev/sdb"},
		},
		"a directory that is really called so": {
			`43 23 8:2 /gone\040(deleted) /pods/x\040(deleted) rw - xfs /dev/sdb rw`,
			Point{ID: 43, Parent: 23, Device: "8:2", Root: "/gone (deleted)", Path: "/pods/x (deleted)", FSType: "xfs", Source: "/dev/sdb"},
		},
		"no source": {
			"43 23 8:2 / /pods/x rw - tmpfs  rw",
			Point{ID: 43, Parent: 23, Device: "8:2", Root: "/", Path: "/pods/x", FSType: "tmpfs"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			table, err := parseTable(test.line + "\n")
			if err != nil {
				t.Fatal(err)
			}
			if len(table) != 1 || table[0] != test.want {
				t.Errorf("got %+v, want %+v", table, test.want)
			}
		})
	}
}

func TestATableThatCannotBeReadIsAnError(t *testing.T) {
	for _, line := range []string{"", "23 1 8:1 / / rw", "x 1 8:1 / / rw - ext4 /dev/sda1 rw", "23 1 8:1 / / rw shared:x - ext4 /dev/sda1 rw", "23 1 8:1 / - ext4 x rw"} {
		if table, err := parseTable(line + "\n"); err == nil {
			t.Errorf("%q was read as %+v", line, table)
		}
	}
}

func TestWhereThingsAreMounted(t *testing.T) {
	table, err := parseTable(aTable)
	if err != nil {
		t.Fatal(err)
	}
	if top, found := table.At("/pods/x"); !found || top.ID != 41 {
		t.Errorf("the topmost mount at /pods/x is %+v", top)
	}
	if table.IsMountPoint("/pods") {
		t.Error("/pods is a mount point")
	}
	tests := map[string]struct {
		got  []Point
		want []int
	}{
		"below, latest first":                     {table.Below("/pods/x"), []int{42, 41, 40}},
		"below a folder":                          {table.Below("/pods"), []int{42, 41, 40, 43}},
		"below a folder that has nothing":         {table.Below("/pods/x/y"), nil},
		"below everything":                        {table.Below("/"), []int{42, 41, 30, 40, 43, 23}},
		"of a directory, by one of its parents":   {table.Shows("8:2", "/a b"), []int{40}},
		"of a directory itself":                   {table.Shows("8:2", "/a b/c"), []int{40}},
		"of a directory below one that is shown":  {table.Shows("8:2", "/a b/c/d"), nil},
		"of a directory of that name, other disk": {table.Shows("8:1", "/a b"), nil},
		"of a removed directory":                  {table.Shows("8:2", "/gone"), []int{43}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []int
			for _, point := range test.got {
				got = append(got, point.ID)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestTheRunningSystemsTableIsReadAsKubernetesReadsIt(t *testing.T) {
	table, err := Kernel{}.Table()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := mountutils.ParseMountInfo(mountinfo)
	if err != nil {
		t.Fatal(err)
	}
	if len(table) == 0 || len(table) != len(theirs) {
		t.Fatalf("read %d mounts, mount-utils %d", len(table), len(theirs))
	}
	for i, their := range theirs {
		if ours := table[i]; ours.ID != their.ID || !strings.Contains(their.MountPoint, `\`) && ours.Path != their.MountPoint {
			t.Errorf("read %+v, mount-utils %+v", ours, their)
		}
	}
}
