package message_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stowage-dev/stowage/internal/message"
)

func TestATextThatFitsStaysAsItIs(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("x", 64)} {
		if message.Cut(text, 64) != text || message.End(text, 64) != text {
			t.Errorf("%q was changed", text)
		}
	}
}

func TestOfALongErrorTheReasonStays(t *testing.T) {
	text := "copying /" + strings.Repeat("é", 4000) + ": no space left on device"
	for most := range 400 {
		got := message.Cut(text, most)
		if len(got) > most || !utf8.ValidString(got) {
			t.Fatalf("%d: %d bytes, %q", most, len(got), got)
		}
	}
	got := message.Cut(text, 200)
	if !strings.HasPrefix(got, "copying /") || !strings.HasSuffix(got, ": no space left on device") || !strings.Contains(got, "left out") {
		t.Errorf("got %q", got)
	}
}

func TestOfALongPathTheEndStays(t *testing.T) {
	got := message.End("/"+strings.Repeat("é", 4000)+"/file", 101)
	if !strings.HasPrefix(got, "…") || !strings.HasSuffix(got, "é/file") || len(got) > 104 || !utf8.ValidString(got) {
		t.Errorf("got %q", got)
	}
}

func TestWhatIsNoTextBecomesOne(t *testing.T) {
	if got := message.Cut("a\xffb", 100); got != "a�b" {
		t.Errorf("got %q", got)
	}
	if got := message.Cut(strings.Repeat("\x80", 1000), 100); len(got) > 100 || !utf8.ValidString(got) {
		t.Errorf("got %q", got)
	}
	if got := message.End(strings.Repeat("\x80", 1000), 100); len(got) > 103 || !utf8.ValidString(got) {
		t.Errorf("got %q", got)
	}
}

func FuzzCut(f *testing.F) {
	f.Add("an error", 5)
	f.Add(strings.Repeat("é\xff", 700), 1024)
	f.Fuzz(func(t *testing.T, text string, most int) {
		most = min(max(most, 0), 1<<16)
		if got := message.Cut(text, most); len(got) > most || !utf8.ValidString(got) {
			t.Errorf("%d: %d bytes, %q", most, len(got), got)
		}
		if got := message.End(text, most); len(got) > max(most+len("…"), len(text)) {
			t.Errorf("%d: %d bytes", most, len(got))
		}
	})
}
