package listing

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend/nfs/mounted"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

func idOf(number int) string { return fmt.Sprintf("pvc-%06d", number) }

func TestAPageHasNoMoreRecordsThanFitInMemory(t *testing.T) {
	const records = 10 * maxPage
	folder := filepath.Join(t.TempDir(), "records")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	mounttest.Tmpfs(t, folder)
	for i := range records {
		if err := os.WriteFile(filepath.Join(folder, idOf(records-i)+Suffix), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := mounted.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	all := Records{IsID: func(string) bool { return true }}
	after, seen := "", 0
	for more := true; more; {
		var ids []string
		var err error
		ids, more, err = all.idsAfter(t.Context(), dir, after)
		if err != nil {
			t.Fatal(err)
		}
		if len(ids) > maxPage || ids[0] != idOf(seen+1) {
			t.Fatalf("after %q come %d, from %s on", after, len(ids), ids[0])
		}
		seen, after = seen+len(ids), ids[len(ids)-1]
	}
	if seen != records {
		t.Errorf("%d records were listed", seen)
	}
}
