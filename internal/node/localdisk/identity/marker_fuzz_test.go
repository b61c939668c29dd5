package identity

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func FuzzAMarkerIdentifiesADiskOrIsForeign(f *testing.F) {
	for _, content := range []string{`{"id":"a","backend":"fast"}`, `{}`, `{"id":""}`, `[]`, `null`, "", `{"id":1}`, strings.Repeat("[", 1<<16)} {
		f.Add([]byte(content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		path := t.TempDir()
		if err := os.WriteFile(filepath.Join(path, markerName), content, 0o600); err != nil {
			t.Fatal(err)
		}
		folder, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		read, err := ReadMarker(folder)
		switch {
		case err == nil && (read == nil || read.ID == "" || len(read.ID) > maxMarker):
			t.Errorf("it has %+v", read)
		case err != nil && (!errors.Is(err, ErrForeignDisk) || len(err.Error()) > maxMarker):
			t.Errorf("got %v", err)
		}
	})
}
