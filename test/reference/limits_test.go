package reference_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// limit is a constant with its value, and the file that has it.
var limit = regexp.MustCompile("\\[`([A-Za-z, ]+) = ([^`]+)`\\]\\(\\.\\./\\.\\./([a-z0-9_./-]+)\\)")

func TestEveryLimitIsTheCodes(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "reference", "limits.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := limit.FindAllStringSubmatch(string(text), -1)
	if len(found) == 0 {
		t.Fatal("the page has no limit")
	}
	for _, each := range found {
		code, err := os.ReadFile(filepath.Join(root, each[3]))
		if err != nil {
			t.Error(err)
			continue
		}
		declared := regexp.MustCompile(`(?m)^\s*(const |var )?` + each[1] + `( +[A-Za-z0-9.]+)? += ` + regexp.QuoteMeta(each[2]) + `( //.*)?$`)
		if !declared.Match(code) {
			t.Errorf("%s doesn't have %s = %s any more: change the number in docs/reference/limits.md, too", each[3], each[1], each[2])
		}
	}
}
