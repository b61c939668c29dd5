package reference_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fence   = regexp.MustCompile("(?s)```.*?```")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	unkept  = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// anchorsOf returns the anchors that GitHub gives the headings of a page.
func anchorsOf(t *testing.T, path string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	anchors := map[string]bool{}
	for _, found := range heading.FindAllStringSubmatch(string(text), -1) {
		title := linked.ReplaceAllString(found[1], "$1")
		anchors[strings.ReplaceAll(unkept.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-")] = true
	}
	return anchors
}

func checkLinks(t *testing.T, page string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range link.FindAllStringSubmatch(fence.ReplaceAllString(string(text), ""), -1) {
		path, anchor, _ := strings.Cut(found[1], "#")
		target := page
		if path != "" {
			target = filepath.Join(filepath.Dir(page), path)
		}
		if strings.Contains(found[1], "://") {
			continue
		}
		if _, err := os.Stat(target); err != nil {
			t.Errorf("%s links to %s, which isn't there", page, found[1])
		} else if anchor != "" && filepath.Ext(target) == ".md" && !anchorsOf(t, target)[anchor] {
			t.Errorf("%s links to %s, a heading that isn't there", page, found[1])
		}
	}
}

func TestEveryLinkInTheDocsLeadsSomewhere(t *testing.T) {
	for _, page := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md"} {
		checkLinks(t, filepath.Join(root, page))
	}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			checkLinks(t, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
