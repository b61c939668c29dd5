package main

import (
	"slices"
	"testing"
)

const sample = `# words
unclean old/ gone/
word nobody name it
word tells_whether reports whether
part heir bestClaim
suffix Indeed Live
allow passwd.go nobody
`

func TestWordsAreFoundWhereTheyStand(t *testing.T) {
	for text, want := range map[string]string{
		"nothing\n// Nobody does.":  "a.go:2: nobody: say name it",
		"it tells whether it is":    "a.go:1: tells_whether: say reports whether",
		"func bestHeir() {}":        "a.go:1: heir: say bestClaim",
		"heirs := 1":                "a.go:1: heir: say bestClaim",
		"var theHeirOf":             "a.go:1: heir: say bestClaim",
		"isAttachedIndeed()":        "a.go:1: Indeed: say Live",
		"http.NoBody":               "",
		"their heirloom":            "",
		"it is indeed. Indeed, yes": "",
		"it tells why":              "",
	} {
		l := parsed(t, sample)
		var wanted []string
		if want != "" {
			wanted = []string{want}
		}
		if got := l.check("a.go", text); !slices.Equal(got, wanted) {
			t.Errorf("%q: %q, want %q", text, got, wanted)
		}
	}
}

func TestWhatIsUncleanOrAllowedIsExcusedAsLongAsItIs(t *testing.T) {
	l := parsed(t, sample)
	for _, file := range []string{"old/a.go", "passwd.go", own + "words.txt"} {
		if got := l.check(file, "nobody"); len(got) > 0 {
			t.Errorf("%s: %q", file, got)
		}
	}
	if got := l.check("passwd.go", "heir"); len(got) != 1 {
		t.Errorf("of another word: %q", got)
	}
	if got := l.unused(); !slices.Equal(got, []string{"take off the list what is clean: gone/"}) {
		t.Errorf("unused: %q", got)
	}
}

func TestAListThatNamesNoBetterWordIsAnError(t *testing.T) {
	for _, text := range []string{"word nobody", "words nobody a component", "allow a.go"} {
		if _, err := parse(text); err == nil {
			t.Errorf("%q is no error", text)
		}
	}
}

func parsed(t *testing.T, text string) *list {
	t.Helper()
	l, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
