package tree

import (
	"strconv"
	"unicode/utf8"
)

// maxShown is how many bytes of a text that others wrote a message has.
const maxPrinted = 200

// Cut is a text that others wrote, as a message can quote it: cut in the middle.
func Truncate(text string) string {
	const half = maxPrinted / 2
	if len(text) <= maxPrinted {
		return text
	}
	return text[:half] + "…" + text[len(text)-half:]
}

// Shown is a path, or another text that others wrote, as a message can have it without
// quotes: cut in the middle, and quoted where it isn't plain.
func Printable(text string) string {
	text = Truncate(text)
	for _, char := range text {
		if char == utf8.RuneError || !strconv.IsPrint(char) {
			return strconv.QuoteToASCII(text)
		}
	}
	return text
}
