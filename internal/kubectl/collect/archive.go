package collect

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"time"
)

// Bounds of an archive, before compression.
const (
	mostOfFile    = 4 << 20
	mostOfArchive = 64 << 20
)

// archive is a tar.gz that grows file by file, up to its bounds. The first error of a write
// stays: later files are left out.
type archive struct {
	zipped *gzip.Writer
	tar    *tar.Writer
	now    time.Time
	size   int
	// left are the files that were left out or cut.
	left []string
	err  error
}

func newArchive(out io.Writer, now time.Time) *archive {
	zipped := gzip.NewWriter(out)
	return &archive{zipped: zipped, tar: tar.NewWriter(zipped), now: now}
}

// add adds a file, or the beginning of one that is too long.
func (a *archive) add(name string, content []byte) {
	if a.err != nil {
		return
	}
	if a.size >= mostOfArchive {
		a.left = append(a.left, name+": left out, the archive is full")
		return
	}
	if most := min(mostOfFile, mostOfArchive-a.size); len(content) > most {
		a.left = append(a.left, fmt.Sprintf("%s: cut after %d of %d bytes", name, most, len(content)))
		content = content[:most]
	}
	a.size += len(content)
	header := &tar.Header{Name: "stowage/" + name, Mode: 0o600, Size: int64(len(content)), ModTime: a.now.Truncate(time.Second)}
	if a.err = a.tar.WriteHeader(header); a.err == nil {
		_, a.err = a.tar.Write(content)
	}
}

// close ends the archive, and returns the first error of it.
func (a *archive) close() error {
	if err := a.tar.Close(); a.err == nil {
		a.err = err
	}
	if err := a.zipped.Close(); a.err == nil {
		a.err = err
	}
	if a.err != nil {
		return fmt.Errorf("writing the archive: %w", a.err)
	}
	return nil
}
