package docs_test

import (
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/test/harness/controlplane"
)

func TestThePageOnHandOversHasTheFlagOfTheStandaloneOverlay(t *testing.T) {
	controllers, err := controlplane.StandaloneControllers()
	if err != nil {
		t.Fatal(err)
	}
	page, err := contentOf("docs/operate/hand-over.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page, "--controllers="+controllers+"\n") {
		t.Errorf("docs/operate/hand-over.md doesn't have --controllers=%s", controllers)
	}
}
