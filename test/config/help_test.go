package config_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

func TestHelpListsEveryTargetThatIsDescribed(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(apiserver.Repository(), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	help, err := exec.Command("make", "--no-print-directory", "-C", apiserver.Repository(), "help").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, help)
	}
	// A target with a folder is a file that others need.
	described := regexp.MustCompile(`(?m)^([^\s:#/]+):.*## `).FindAllStringSubmatch(string(makefile), -1)
	for _, target := range described {
		if !strings.Contains(string(help), "\n  "+target[1]+" ") {
			t.Errorf("make help doesn't list %s", target[1])
		}
	}
	if !strings.Contains(string(help), "\n  e2e ") || len(described) < 20 {
		t.Errorf("of %d targets it lists\n%s", len(described), help)
	}
}
