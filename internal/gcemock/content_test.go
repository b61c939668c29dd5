package gcemock_test

import (
	"os"
	"strconv"
	"testing"
)

func itoa(id uint64) string { return strconv.FormatUint(id, 10) }

func writeAt(t *testing.T, path string, offset int64, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt([]byte(text), offset); err != nil {
		t.Fatal(err)
	}
}

func readAt(t *testing.T, path string, offset int64, size int) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text := make([]byte, size)
	if _, err := file.ReadAt(text, offset); err != nil {
		t.Fatal(err)
	}
	return string(text)
}
