// Package output prints what the verbs of kubectl stowage found: tables for a terminal, JSON
// and YAML for programs. Every text passes Escape on its way out, because names, events and
// annotations are written by users and may contain control characters.
//
// The verbs call it. It reads nothing from a cluster.
package output

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Escape returns a text in which no character controls a terminal. Control characters, and those
// that change the direction of text or are invisible, become \uXXXX, as in JSON.
func Escape(text string) string { return escape(text, "") }

// escape leaves the characters in keep.
func escape(text, keep string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		harmless := !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
		switch high, low := utf16.EncodeRune(r); {
		case harmless || strings.ContainsRune(keep, r):
			b.WriteRune(r)
		case high != unicode.ReplacementChar:
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Short returns an escaped text of at most so many characters; "…" stands for the rest.
func Short(text string, most int) string {
	runes := []rune(Escape(text))
	if len(runes) <= most {
		return string(runes)
	}
	return string(runes[:most-1]) + "…"
}
