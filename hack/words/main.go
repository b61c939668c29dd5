// Command words keeps words out of the project that say less than others, or that are its own. The file that is its
// argument lists them, each with the better word. It fails with the places where one stands, and where the list excuses
// what is clean.
//
// golangci-lint's misspell finds whole words in Go files alone, and forbidigo finds no comments and no declarations.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// own is the folder of the list, which has all of the words.
const own = "hack/words/"

var written = []string{"*.go", "*.md", "*.md.tmpl", "*.yaml", "*.yml", "*.sh", "*Makefile", ".ci/*"}

var errWords = errors.New("words are there that the project does without")

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: words FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

func run(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	l, err := parse(string(text))
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	files, err := exec.Command("git", append([]string{"ls-files", "--cached", "--others", "--exclude-standard"}, written...)...).Output()
	if err != nil {
		return fmt.Errorf("listing the files: %w", err)
	}
	var complaints []string
	for _, file := range strings.Fields(string(files)) {
		content, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // git lists what was just removed, too
			return err
		}
		complaints = append(complaints, l.check(file, string(content))...)
	}
	if complaints = append(complaints, l.unused()...); len(complaints) > 0 {
		return fmt.Errorf("%w:\n%s", errWords, strings.Join(complaints, "\n"))
	}
	return nil
}

type rule struct {
	word, better string
	pattern      *regexp.Regexp
}

// list is the file of words. An excuse is true once a word stood there.
type list struct {
	rules   []rule
	excuses map[excuse]bool
}

// excuse is for the files whose paths begin so, and for a word; empty: for all words.
type excuse struct{ path, word string }

func parse(text string) (*list, error) {
	l := &list{excuses: map[excuse]bool{}}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] == "#":
		case fields[0] == "unclean":
			for _, path := range fields[1:] {
				l.excuses[excuse{path: path}] = false
			}
		case len(fields) < 3:
			return nil, fmt.Errorf("%q has no better word", strings.TrimSpace(line))
		case fields[0] == "allow":
			l.excuses[excuse{fields[1], fields[2]}] = false
		default:
			pattern, err := patternOf(fields[0], fields[1])
			if err != nil {
				return nil, err
			}
			l.rules = append(l.rules, rule{fields[1], strings.Join(fields[2:], " "), pattern})
		}
	}
	return l, nil
}

// patternOf is how a word is found. It finds no NoBody, which is a name of Go's.
func patternOf(kind, word string) (*regexp.Regexp, error) {
	upper, lower := strings.ToUpper(word[:1])+word[1:], strings.ToLower(word[:1])+word[1:]
	switch kind {
	case "word":
		return regexp.Compile(`\b(` + strings.ReplaceAll(upper+"|"+lower, "_", `\s+`) + `)\b`)
	case "part":
		return regexp.Compile(`(\b` + lower + `|` + upper + `)(e?s)?([^a-z]|$)`)
	case "suffix":
		return regexp.Compile(`[a-z]` + upper + `\b`)
	default:
		return nil, fmt.Errorf("%s %s: a line is a word, a part, a suffix, or says what is unclean or allowed", kind, word)
	}
}

// check returns which words a file has where.
func (l *list) check(file, content string) (complaints []string) {
	for _, rule := range l.rules {
		if strings.HasPrefix(file, own) || !rule.pattern.MatchString(content) || l.isExcused(file, rule.word) {
			continue
		}
		for number, line := range strings.Split(content, "\n") {
			if rule.pattern.MatchString(line) {
				complaints = append(complaints, fmt.Sprintf("%s:%d: %s: say %s", file, number+1, rule.word, rule.better))
			}
		}
	}
	return complaints
}

func (l *list) isExcused(file, word string) (is bool) {
	for each := range l.excuses {
		if strings.HasPrefix(file, each.path) && (each.word == "" || each.word == word) {
			l.excuses[each], is = true, true
		}
	}
	return is
}

// unused returns what the list needn't excuse any more.
func (l *list) unused() (complaints []string) {
	for each, used := range l.excuses {
		if !used {
			complaints = append(complaints, strings.TrimSpace("take off the list what is clean: "+each.path+" "+each.word))
		}
	}
	slices.Sort(complaints)
	return complaints
}
