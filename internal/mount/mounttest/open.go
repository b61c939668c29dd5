package mounttest

import (
	"os"
	"testing"
)

// Open opens a file or directory until the test ends.
func Open(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}
