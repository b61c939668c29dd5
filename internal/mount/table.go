package mount

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/sharedread"
)

// mountinfo lists the mounts of this process's mount namespace: see
// proc_pid_mountinfo(5).
const mountinfo = "/proc/self/mountinfo"

// deletedMark ends the root of a mount with a source that was removed. A real path
// has no empty part, so no file name can be mistaken for it.
const deletedMark = "//deleted"

// maxShownLine is how much of an unreadable line an error quotes, in bytes.
const maxShownLine = 300

// Point is one mount.
type Point struct {
	// ID is the mount's; Parent is that of the mount which it is mounted on.
	ID, Parent int
	// Device is major:minor of the file system, the same for all its mounts.
	Device string
	// Root is the directory of the file system that is visible at Path.
	Root string
	// RootDeleted: Root was removed; only mounts and open files keep its data.
	RootDeleted bool
	// Path is where it is mounted.
	Path string
	// FSType is the file system's type, and Source what it was made from.
	FSType, Source string
	// Address is that of the server, where the file system is NFS.
	Address string
	// Access is what may be done through this mount, and SystemAccess with the file system,
	// through whatever mount: after errors, the kernel writes through none.
	Access, SystemAccess Access
	// StopsOnErrors: after errors, the kernel stops writing to the file system. Not every
	// kernel shows in the table that it has stopped.
	StopsOnErrors bool
	// Group is the mount's peer group: mounts and unmounts below one member propagate to all.
	// Master is the peer group that propagates to this mount, but not back. 0: none.
	Group, Master int
}

// Table is all mounts of a mount namespace.
type Table []Point

// At returns the topmost mount at path.
func (t Table) At(path string) (Point, bool) {
	var at []Point
	for _, point := range t {
		if point.Path == path {
			at = append(at, point)
		}
	}
	for _, point := range at {
		covered := slices.ContainsFunc(at, func(other Point) bool { return other.Parent == point.ID })
		if !covered {
			return point, true
		}
	}
	return Point{}, false
}

// IsMountPoint reports whether anything is mounted at path.
func (t Table) IsMountPoint(path string) bool {
	_, found := t.At(path)
	return found
}

// Below lists what is mounted at path or below it, each mount before the one that it is mounted on.
// That is the order in which to unmount.
func (t Table) Below(path string) []Point {
	var below []Point
	for _, point := range t {
		if within(point.Path, path) {
			below = append(below, point)
		}
	}
	if len(below) < 2 {
		return below
	}
	depths := t.depths()
	slices.SortStableFunc(below, func(a, b Point) int { return depths[b.ID] - depths[a.ID] })
	return below
}

// Shows lists where a directory of a file system is visible, wholly or in part. Those are the mounts
// of that device that have the directory, or one below it, as their root.
func (t Table) Shows(device, root string) []Point {
	var shows []Point
	for _, point := range t {
		if point.Device == device && within(point.Root, root) {
			shows = append(shows, point)
		}
	}
	return shows
}

// SharedBeyond lists the mounts at path or below it that share a peer group with a mount
// elsewhere.
func (t Table) SharedBeyond(path string) []Point {
	beyond := map[int]bool{}
	for _, point := range t {
		if point.Group != 0 && !within(point.Path, path) {
			beyond[point.Group] = true
		}
	}
	return slices.DeleteFunc(t.Below(path), func(point Point) bool { return !beyond[point.Group] })
}

// Around returns the topmost mount at path, or at the nearest directory above it.
func (t Table) Around(path string) (Point, bool) {
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		if point, found := t.At(at); found || at == "/" || at == "." {
			return point, found
		}
	}
}

// withID finds a mount by its ID.
func (t Table) withID(id int) (Point, bool) {
	for _, point := range t {
		if point.ID == id {
			return point, true
		}
	}
	return Point{}, false
}

// depths counts how many mounts each mount lies on.
func (t Table) depths() map[int]int {
	parents := make(map[int]int, len(t))
	for _, point := range t {
		parents[point.ID] = point.Parent
	}
	depths := make(map[int]int, len(t))
	for _, point := range t {
		depth := 0
		// The root of the namespace has a parent that isn't listed, or is its own.
		for id := point.ID; depth <= len(t); depth++ {
			parent, listed := parents[id]
			if !listed || parent == id {
				break
			}
			id = parent
		}
		depths[point.ID] = depth
	}
	return depths
}

// within reports whether path is dir or lies below it.
func within(path, dir string) bool {
	rest, found := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	return path == dir || found && strings.HasPrefix(rest, "/")
}

// tables shares reads between operations. Each needs a table that is younger than its own last
// step, and a read costs as much as a mount. While many mount, reads would follow each other without
// an end: so they are paced.
var tables = sharedread.New(func(context.Context, struct{}) (Table, error) { return readTableOf(mountinfo) }).Paced()

// readTable reads what is mounted now. Callers share the result: don't change it.
func readTable() (Table, error) { return tables.Get(context.Background(), struct{}{}) }

func readTableOf(mountinfo string) (Table, error) {
	content, err := readWhole(mountinfo)
	if err != nil {
		return nil, fmt.Errorf("reading the mount table: %w", err)
	}
	return parseTable(content)
}

// buffers are used again: a table is read so often that they would be most of what is collected.
var buffers = sync.Pool{New: func() any { return &bytes.Buffer{} }}

// readWhole reads a file that says nothing of its size, as those of /proc.
func readWhole(path string) (string, error) {
	// os.Open would ask whether the file can be polled: four calls of the kernel more.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &os.PathError{Op: "open", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	content := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(content)
	content.Reset()
	if _, err := content.ReadFrom(file); err != nil {
		return "", err
	}
	return content.String(), nil
}

// parseTable reads the text of a mountinfo file.
func parseTable(content string) (Table, error) {
	table := make(Table, 0, strings.Count(content, "\n"))
	for line := range strings.Lines(content) {
		point, err := parsePoint(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("reading line %.*q of the mount table: %w", maxShownLine, line, err)
		}
		table = append(table, point)
	}
	return table, nil
}

func parsePoint(line string) (Point, error) {
	// Only a plain space separates: the kernel escapes those within a field, but
	// not other characters that Unicode counts as space.
	mounted, made, found := strings.Cut(line, " - ")
	var fields [6]string
	groups, complete := cutFields(mounted, fields[:])
	var origin [2]string
	rest, known := cutFields(made, origin[:])
	if !found || !complete || !known {
		return Point{}, errors.New("too few fields")
	}
	id, idErr := strconv.Atoi(fields[0])
	parent, parentErr := strconv.Atoi(fields[1])
	if err := errors.Join(idErr, parentErr); err != nil {
		return Point{}, err
	}
	root, deleted := strings.CutSuffix(unescape(fields[3]), deletedMark)
	point := Point{
		ID: id, Parent: parent, Device: fields[2],
		Root: root, RootDeleted: deleted, Path: filepath.Clean(unescape(fields[4])),
		FSType: origin[0], Source: unescape(origin[1]),
	}
	for option := range strings.SplitSeq(fields[5], ",") {
		if option == "ro" {
			point.Access = ReadOnly
		}
	}
	options, _, _ := strings.Cut(rest, " ")
	point.parseSystem(options)
	err := point.parseGroups(groups)
	return point, err
}

// cutFields cuts a text at single spaces into the fields, and returns what comes after them. complete
// is false if there are fewer.
func cutFields(text string, fields []string) (rest string, complete bool) {
	more := true
	for i := range fields {
		if !more {
			return "", false
		}
		fields[i], text, more = strings.Cut(text, " ")
	}
	return text, true
}

// parseSystem reads the options of the file system.
func (p *Point) parseSystem(options string) {
	isNFS := p.FSType == "nfs" || p.FSType == "nfs4"
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "ro", "emergency_ro": // the second is what ext4 has since Linux 6.15
			p.SystemAccess = ReadOnly
		case "errors=remount-ro":
			p.StopsOnErrors = true
		}
		if address, found := strings.CutPrefix(option, "addr="); found && isNFS && p.Address == "" {
			p.Address = address
		}
	}
}

// parseGroups reads the optional fields, of which a line has any number.
func (p *Point) parseGroups(fields string) (err error) {
	for field := range strings.SplitSeq(fields, " ") {
		name, number, _ := strings.Cut(field, ":")
		switch name {
		case "shared":
			p.Group, err = strconv.Atoi(number)
		case "master":
			p.Master, err = strconv.Atoi(number)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unescape turns the octal escapes of the kernel, such as \040 for a space,
// back into characters.
func unescape(field string) string {
	if !strings.Contains(field, `\`) {
		return field
	}
	var plain strings.Builder
	for i := 0; i < len(field); i++ {
		if field[i] == '\\' && i+4 <= len(field) {
			if code, err := strconv.ParseUint(field[i+1:i+4], 8, 8); err == nil {
				plain.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		plain.WriteByte(field[i])
	}
	return plain.String()
}
