package tree

import (
	"strconv"
	"unicode/utf8"
)

// maxPrinted is how many bytes of a text that others wrote a message quotes.
const maxPrinted = 200

// Truncate shortens a text that others wrote, in the middle, for a message that quotes it.
func Truncate(text string) string {
	const half = maxPrinted / 2
	if len(text) <= maxPrinted {
		return text
	}
	return text[:half] + "…" + text[len(text)-half:]
}

// Printable is a path, or another text that others wrote, for a message: truncated in the middle,
// and quoted where it isn't plain.
func Printable(text string) string {
	text = Truncate(text)
	for _, char := range text {
		if char == utf8.RuneError || !strconv.IsPrint(char) {
			return strconv.QuoteToASCII(text)
		}
	}
	return text
}
