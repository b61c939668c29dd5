package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

// block is a fenced block of a page that a shell could run.
type block struct {
	page string
	line int
	// section is the heading above it.
	section  string
	language string
	// needs is what it needs, and runBy the test that runs it, by the mark above it.
	needs, runBy string
	text         string
}

var (
	fence = regexp.MustCompile("^( *)```(\\S*)$")
	mark  = regexp.MustCompile(`^ *<!-- (needs|run by): (.+) -->$`)
	// languages are those of fences. A shell runs the first two.
	languages = []string{"sh", "console", "text", "yaml", "mermaid"}
)

// pages are README and all pages below docs, by their paths from the repository.
func pages() ([]string, error) {
	found := []string{"README.md"}
	err := filepath.WalkDir(filepath.Join(apiserver.Repository(), "docs"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".md" {
			path, err = filepath.Rel(apiserver.Repository(), path)
			found = append(found, path)
		}
		return err
	})
	return found, err
}

func contentOf(page string) (string, error) {
	content, err := os.ReadFile(filepath.Join(apiserver.Repository(), page))
	return string(content), err
}

// blocksOf are the blocks of a page that a shell could run. A fence without a language, or with
// another one than those of languages, is an error.
func blocksOf(page, content string) (blocks []block, err error) {
	var open *block
	var indent string
	var before, section string
	for number, line := range strings.Split(content, "\n") {
		found := fence.FindStringSubmatch(line)
		switch {
		case open == nil && found != nil:
			if !slices.Contains(languages, found[2]) {
				return nil, fmt.Errorf("%s:%d: the language of a fence is one of %v, not %q", page, number+1, languages, found[2])
			}
			open, indent = &block{page: page, line: number + 1, section: section, language: found[2]}, found[1]
			open.readMark(before)
		case open != nil && found != nil:
			if open.language == "sh" || open.language == "console" {
				blocks = append(blocks, *open)
			}
			open = nil
		case open == nil && strings.HasPrefix(line, "#"):
			section = strings.TrimLeft(line, "# ")
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		}
		before = line
	}
	return blocks, nil
}

func (b *block) readMark(line string) {
	switch found := mark.FindStringSubmatch(line); {
	case found == nil:
	case found[1] == "needs":
		b.needs = found[2]
	default:
		b.runBy = found[2]
	}
}

// commands are what is typed, one text for each time that the block runs a shell. Of a console those
// are the lines after a prompt, and fails is true where the output says that the last one does.
func (b *block) commands() (typed []string, fails bool) {
	if b.language == "sh" {
		return []string{b.text}, false
	}
	for line := range strings.Lines(b.text) {
		if command, prompted := strings.CutPrefix(line, "$ "); prompted {
			typed = append(typed, command)
		}
		fails = strings.HasPrefix(line, "Error: ")
	}
	return typed, fails
}

func (b *block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }
