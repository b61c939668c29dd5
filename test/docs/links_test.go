package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fenced  = regexp.MustCompile("(?s)\n *```.*?\n *```")
	markup  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	unnamed = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchorsOf are the names under which links reach a page's headings, as GitHub makes them.
func anchorsOf(content string) map[string]bool {
	anchors := map[string]bool{}
	for _, found := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(content, ""), -1) {
		name := strings.ToLower(markup.ReplaceAllString(strings.TrimSpace(found[1]), "$1"))
		anchors[strings.ReplaceAll(unnamed.ReplaceAllString(name, ""), " ", "-")] = true
	}
	return anchors
}

func TestEveryLinkLeadsToAPageAndAHeadingThatExist(t *testing.T) {
	all, err := pages()
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(all, "CONTRIBUTING.md", "CHANGELOG.md") {
		content, err := contentOf(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range link.FindAllStringSubmatch(fenced.ReplaceAllString(content, ""), -1) {
			if problem := checkLink(page, found[1]); problem != "" {
				t.Errorf("%s: %s: %s", page, found[1], problem)
			}
		}
	}
}

// checkLink is what is wrong with a link of a page; "" for nothing, or for one that leaves the
// repository.
func checkLink(page, target string) string {
	if strings.Contains(target, "://") {
		return ""
	}
	path, anchor, _ := strings.Cut(target, "#")
	to := page
	if path != "" {
		to = filepath.Join(filepath.Dir(page), path)
	}
	if _, err := os.Stat(filepath.Join(apiserver.Repository(), to)); err != nil {
		return "there is no such file"
	}
	if anchor == "" {
		return ""
	}
	content, err := contentOf(to)
	if err != nil || !anchorsOf(content)[anchor] {
		return "there is no such heading"
	}
	return ""
}

func TestTheIndexHasEveryPage(t *testing.T) {
	index, err := contentOf("docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	linked := map[string]bool{"docs/README.md": true}
	for _, found := range link.FindAllStringSubmatch(index, -1) {
		path, _, _ := strings.Cut(found[1], "#")
		linked[filepath.Join("docs", path)] = true
	}
	all, err := pages()
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range all {
		if !linked[page] {
			t.Errorf("docs/README.md has no link to %s", page)
		}
	}
}

func TestAnchorsAreThoseThatGitHubMakes(t *testing.T) {
	anchors := anchorsOf("# Why `a` isn't [b](c.md)\n```\n# no heading\n```\n## One, two: three\n")
	for _, wanted := range []string{"why-a-isnt-b", "one-two-three"} {
		if !anchors[wanted] {
			t.Errorf("%q is missing in %v", wanted, anchors)
		}
	}
	if len(anchors) != 2 {
		t.Errorf("they are %v", anchors)
	}
}
