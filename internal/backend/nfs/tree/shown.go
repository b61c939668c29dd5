package tree

import (
	"strconv"
	"unicode/utf8"
)

// maxShown is how many bytes of a text that others wrote a message has.
const maxShown = 200

// Shown is a path, or another text that others wrote, as a message can have it: cut in
// the middle, and quoted where it isn't plain.
func Shown(text string) string {
	const half = maxShown / 2
	if len(text) > maxShown {
		text = text[:half] + "…" + text[len(text)-half:]
	}
	for _, char := range text {
		if char == utf8.RuneError || !strconv.IsPrint(char) {
			return strconv.QuoteToASCII(text)
		}
	}
	return text
}
