package effect_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestThePageHasEveryMessageAndKey(t *testing.T) {
	code, err := os.ReadFile("effect.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/design/logs.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := regexp.MustCompile(`(?m)^\t*(?:const )?[A-Z][A-Za-z]+ += "([a-z ]+)"$`).FindAllStringSubmatch(string(code), -1)
	if len(texts) < 20 {
		t.Fatalf("%d messages and keys are found", len(texts))
	}
	for _, text := range texts {
		if !strings.Contains(string(page), "`"+text[1]+"`") {
			t.Errorf("%q is missing in docs/design/logs.md", text[1])
		}
	}
}
