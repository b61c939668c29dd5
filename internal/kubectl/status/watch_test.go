package status

import "testing"

func TestAFrameIsDrawnOverTheOneBefore(t *testing.T) {
	for name, test := range map[string]struct {
		frame string
		rows  int
		want  string
	}{
		"to a file":             {"a\nb\n", 0, "a\nb\n\n"},
		"to a terminal":         {"a\nb\n", 3, "\x1b[H\x1b[?7la\x1b[K\nb\x1b[K\n\x1b[J\x1b[?7h"},
		"to one that is lower":  {"a\nb\nc\nd\n", 4, "\x1b[H\x1b[?7la\x1b[K\nb\x1b[K\n… 2 more lines: make the terminal taller\x1b[K\n\x1b[J\x1b[?7h"},
		"to one that has a row": {"a\nb\nc\n", 1, "\x1b[H\x1b[?7la\x1b[K\n… 2 more lines: make the terminal taller\x1b[K\n\x1b[J\x1b[?7h"},
	} {
		if got := string(drawn([]byte(test.frame), test.rows)); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
