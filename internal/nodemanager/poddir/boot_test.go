package poddir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
)

func TestAfterARebootContainersSeeNothingUntilItIsMounted(t *testing.T) {
	tree, err := NewTree(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	description := filepath.Join(tree.ContainerDir(nodetest.SomePod, "main"), "mounts.json")
	describe := func() {
		if err := errors.Join(os.MkdirAll(filepath.Dir(description), 0o750), os.WriteFile(description, []byte("{}"), 0o640)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		boot string
		kept bool
	}{{"first", false}, {"first", true}, {"second", false}, {"second", true}}
	for _, test := range tests {
		describe()
		if err := tree.WithdrawAfterReboot(test.boot); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(description); (err == nil) != test.kept {
			t.Errorf("at boot %s: %v", test.boot, err)
		}
	}
}
