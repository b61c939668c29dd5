package mount

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// escaped writes a name as the kernel does in a mountinfo file.
func escaped(name string) string {
	var text strings.Builder
	for i := range len(name) {
		if strings.IndexByte(" \t\n\\#", name[i]) >= 0 {
			fmt.Fprintf(&text, `\%03o`, name[i])
		} else {
			text.WriteByte(name[i])
		}
	}
	return text.String()
}

func FuzzAMountIsFoundByWhateverNameAPodGaveItsDirectory(f *testing.F) {
	for _, name := range []string{"data", "a b", " - ", `\040`, "\n36 1 8:1 / /etc", "//deleted", "\xff\xfe", "#", " shared:1", "ünder"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if strings.ContainsRune(name, 0) {
			t.Skip("no file has such a name")
		}
		path := filepath.Clean("/pods/" + name)
		line := fmt.Sprintf("36 35 98:0 %s %s rw,noatime shared:1 - ext4 %s rw,errors=continue\n", escaped(path), escaped(path), escaped(name))
		table, err := parseTable(line)
		if err != nil {
			t.Fatal(err)
		}
		root, deleted := strings.CutSuffix(path, deletedMark)
		got := table[0]
		if len(table) != 1 || got.Path != path || got.Root != root || got.RootDeleted != deleted || got.Source != name || got.Group != 1 {
			t.Errorf("%q is read as %+v", line, table)
		}
	})
}

func FuzzNoTextIsTooMuchForTheMountTable(f *testing.F) {
	f.Add("36 35 98:0 / / rw - ext4 /dev/sda rw\n")
	f.Add("1 1 0:1 / / ro shared:x - tmpfs\n")
	f.Add(strings.Repeat("x ", 1<<12))
	f.Fuzz(func(t *testing.T, content string) {
		table, err := parseTable(content)
		if err != nil && len(err.Error()) > 2*maxShownLine {
			t.Errorf("the message has %d bytes", len(err.Error()))
		}
		table.depths()
		table.SharedBeyond("/")
	})
}
