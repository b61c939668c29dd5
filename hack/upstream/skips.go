package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// skips are tests that are not played, by suite/Test, each with its reason.
type skips map[string]string

// parseSkips reads a line for each: the test, spaces, the reason. Lines that begin with
// # are comments.
func parseSkips(text string) (skips, error) {
	all := skips{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		test, reason, _ := strings.Cut(line, " ")
		reason = strings.TrimSpace(reason)
		switch {
		case reason == "":
			return nil, fmt.Errorf("reading the expected skips: %s has no reason", test)
		case all[test] != "":
			return nil, fmt.Errorf("reading the expected skips: %s is there twice", test)
		}
		all[test] = reason
	}
	return all, nil
}

func (s skips) check(built []suite) error {
	var known []string
	for _, suite := range built {
		for _, test := range suite.tests {
			known = append(known, suite.name+"/"+test)
		}
	}
	var problems []error
	for test := range s {
		if !slices.Contains(known, test) {
			problems = append(problems, fmt.Errorf("skips.txt has %s, which is none of upstream's tests", test))
		}
	}
	return errors.Join(problems...)
}
