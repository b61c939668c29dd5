package main

import (
	"strings"
	"testing"
)

func TestSkipsHaveReasons(t *testing.T) {
	for text, want := range map[string]string{
		"# a comment\n\nvolume/TestOne  It can't be.\n": "",
		"volume/TestOne\n":                     "has no reason",
		"volume/TestOne a\nvolume/TestOne b\n": "is there twice",
	} {
		parsed, err := parseSkips(text)
		switch {
		case want == "" && (err != nil || parsed["volume/TestOne"] != "It can't be."):
			t.Errorf("%q is %v, %v", text, parsed, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, not that it %s", text, err, want)
		}
	}
}

func TestASkipThatMatchesNothingIsAnError(t *testing.T) {
	built := []suite{{name: "volume", tests: []string{"TestOne", "TestTwo"}}}
	if err := (skips{"volume/TestTwo": "why"}).check(built); err != nil {
		t.Errorf("of one that there is: %v", err)
	}
	if err := (skips{"volume/TestThree": "why"}).check(built); err == nil || !strings.Contains(err.Error(), "volume/TestThree") {
		t.Errorf("of one that there isn't: %v", err)
	}
}

func TestSkipsNameTestsOfASuite(t *testing.T) {
	for _, name := range []string{"TestTwo", "volumescheduling/TestTwo"} {
		if err := (skips{name: "why"}).check([]suite{{name: "volume", tests: []string{"TestTwo"}}}); err == nil {
			t.Errorf("%s is taken for volume/TestTwo", name)
		}
	}
}
