package output_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/internal/kubectl/output"
)

func TestNoCharacterControlsATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"plain, é, 木":     "plain, é, 木",
		"\x1b[31mred":     `\u001b[31mred`,
		"two\nlines\r":    `two\u000alines\u000d`,
		"\u009b2J":        `\u009b2J`,
		"\u202eback":      `\u202eback`,
		"\U000e0001tag":   `\udb40\udc01tag`,
		"not UTF-8: \xff": "not UTF-8: \uFFFD",
	} {
		if got := output.Escape(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestALongTextIsCut(t *testing.T) {
	if got := output.Short("éééé", 3); got != "éé…" {
		t.Errorf("got %q", got)
	}
	if got := output.Short("ééé", 3); got != "ééé" {
		t.Errorf("got %q", got)
	}
}

func printer(t *testing.T, format, color string) (*output.Printer, *bytes.Buffer) {
	t.Helper()
	out := &bytes.Buffer{}
	p, err := (&output.Flags{Format: format, Color: color}).Printer(out)
	if err != nil {
		t.Fatal(err)
	}
	return p, out
}

func TestATableIsAligned(t *testing.T) {
	table := &output.Table{Columns: []string{"NAME", "STATE", "MORE"}, Wide: 2}
	table.Add(output.Text("é"), output.Cell{Text: "Bad", Level: output.Bad}, output.Text("x"))
	table.Add(output.Text("longer"), output.Text(""), output.Text("y"))
	p, out := printer(t, "", "auto")
	p.Print(table)
	if want := "NAME     STATE\né        Bad\nlonger   -\n"; out.String() != want {
		t.Errorf("got\n%s", out)
	}
	p, out = printer(t, "wide", "always")
	p.Print(table)
	if !strings.Contains(out.String(), "\x1b[31mBad\x1b[0m     x") {
		t.Errorf("got\n%q", out)
	}
}

func TestStructuredOutputKeepsItsValueWithoutControlCharacters(t *testing.T) {
	value := map[string]string{"message": "\x1b[2J\u009b\u202e\nend"}
	for _, format := range []string{"json", "yaml"} {
		p, out := printer(t, format, "never")
		if done, err := p.Structured(value); !done || err != nil {
			t.Fatal(done, err)
		}
		if text := strings.TrimSuffix(out.String(), "\n"); strings.ContainsAny(text, "\x1b\u009b\u202e") {
			t.Errorf("%s has control characters: %q", format, text)
		}
		if got := map[string]string{}; format == "json" && (json.Unmarshal(out.Bytes(), &got) != nil || got["message"] != value["message"]) {
			t.Errorf("got %q", got)
		}
	}
}

func TestUnknownFormatsAndColoursAreRefused(t *testing.T) {
	for _, flags := range []output.Flags{{Format: "xml", Color: "auto"}, {Color: "blue"}} {
		if _, err := flags.Printer(&bytes.Buffer{}); err == nil {
			t.Errorf("%+v is accepted", flags)
		}
	}
}
