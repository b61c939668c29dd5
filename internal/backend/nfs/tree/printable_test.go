package tree_test

import (
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

func TestTextOfOthersIsShortenedAndQuotedInMessages(t *testing.T) {
	for text, want := range map[string]string{
		"a/b c":      "a/b c",
		"größe":      "größe",
		"a\nb":       `"a\nb"`,
		"a\xffb":     `"a\xffb"`,
		"a\u202eb":   `"a\u202eb"`,
		"\x1b[31mno": `"\x1b[31mno"`,
	} {
		if got := tree.Printable(text); got != want {
			t.Errorf("%q is printed as %s", text, got)
		}
	}
	for _, long := range []string{strings.Repeat("a", 100_000), strings.Repeat("ö", 100_000), strings.Repeat("\x00", 100_000)} {
		if got := tree.Printable(long); len(got) > 1000 {
			t.Errorf("%d bytes are printed", len(got))
		}
	}
}
