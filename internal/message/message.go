// Package message bounds texts that were made from what others wrote: names of files, answers
// of servers, output of programs. The API server refuses an object with a condition, event or
// status that is too long, and then nothing of it is visible.
//
// Controllers and node agents cut texts with it where these leave them, and errors where they
// take a path up. It reads nothing and keeps nothing.
package message

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits, in bytes.
const (
	// MaxNote is what the note of an event may have (events.k8s.io/v1).
	MaxNote = 1024
	// MaxCondition is what the message of a condition has here. The API allows 32,768, and a
	// status has several conditions, each of which every watcher gets.
	MaxCondition = 4096
	// MaxStatus is what another text of a status has, such as an error of a VolumeAttachment. It also
	// bounds a text in an annotation: all annotations together may have 256 KiB.
	MaxStatus = 4096
	// MaxPath is how much of a path an error has.
	MaxPath = 512
)

// Cut returns a text of at most so many bytes of valid UTF-8. A longer one loses its middle, and the
// text says how much of it went. An error begins with what was being done, and ends with the reason.
func Cut(text string, most int) string {
	text = strings.ToValidUTF8(text, "�")
	if len(text) <= most {
		return text
	}
	mark := fmt.Sprintf("… (%d bytes left out) …", len(text))
	room := most - len(mark)
	if room <= 0 {
		return upTo(text, most)
	}
	begin, end := upTo(text, room/2), from(text, len(text)-room/2)
	return begin + fmt.Sprintf("… (%d bytes left out) …", len(text)-len(begin)-len(end)) + end
}

// End returns the end of a text, of at most so many bytes and a mark that says that there was more.
// At the end, programs say what went wrong, and paths what they are about.
func End(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return "…" + strings.ToValidUTF8(from(text, len(text)-most), "")
}

// upTo is the beginning of a text, which ends between two characters.
func upTo(text string, end int) string {
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// from is the end of a text, which begins between two characters.
func from(text string, begin int) string {
	for begin < len(text) && !utf8.RuneStart(text[begin]) {
		begin++
	}
	return text[begin:]
}
