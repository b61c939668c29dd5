package tree_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

func TestAListingGoesOnAfterAnyEntry(t *testing.T) {
	onBoth(t, func(t *testing.T, root tree.Dir, folder string) {
		const entries = 1000
		for i := range entries {
			must(t, os.WriteFile(filepath.Join(folder, fmt.Sprint("file-", i)), nil, 0o600))
		}
		var names []string
		var places []tree.Cursor
		for entry, err := range root.List(t.Context(), tree.Cursor{}) {
			must(t, err)
			names, places = append(names, entry.Name), append(places, entry.Next)
		}
		if len(names) != entries {
			t.Fatalf("%d entries were listed", len(names))
		}
		for _, at := range []int{0, 1, 255, 256, 500, entries - 1} {
			var rest []string
			for entry, err := range root.List(t.Context(), places[at]) {
				must(t, err)
				rest = append(rest, entry.Name)
			}
			if !slices.Equal(rest, names[at+1:]) {
				t.Errorf("after entry %d, %d follow", at, len(rest))
			}
		}
	})
}
