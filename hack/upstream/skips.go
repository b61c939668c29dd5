package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// skips are stories that are not played, by suite/Test, each with its reason.
type skips map[string]string

// parseSkips reads a line for each: the story, spaces, the reason. Lines that begin with
// # are comments.
func parseSkips(text string) (skips, error) {
	all := skips{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		story, reason, _ := strings.Cut(line, " ")
		reason = strings.TrimSpace(reason)
		switch {
		case reason == "":
			return nil, fmt.Errorf("reading the expected skips: %s has no reason", story)
		case all[story] != "":
			return nil, fmt.Errorf("reading the expected skips: %s is there twice", story)
		}
		all[story] = reason
	}
	return all, nil
}

// check is an error for each that matches no story.
func (s skips) check(built []suite) error {
	var known []string
	for _, suite := range built {
		for _, story := range suite.stories {
			known = append(known, suite.name+"/"+story)
		}
	}
	var problems []error
	for story := range s {
		if !slices.Contains(known, story) {
			problems = append(problems, fmt.Errorf("skips.txt has %s, which is none of upstream's stories", story))
		}
	}
	return errors.Join(problems...)
}
