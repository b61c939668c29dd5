package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

// suite is a set of specs that run together.
type suite struct {
	Name string `json:"name"`
	// Nodes are those that pods may run on. Empty: all.
	Nodes []string `json:"nodes,omitempty"`
	// Drivers are files in drivers.
	Drivers []string `json:"drivers,omitempty"`
	// Specs are expressions of the specs that run, and CI of those that run in CI.
	Specs []string `json:"specs"`
	CI    []string `json:"ci,omitempty"`
	// Parallel is how many specs run at once.
	Parallel int `json:"parallel"`
}

// skip is a set of specs that don't run.
type skip struct {
	// Spec is an expression of their names.
	Spec string `json:"spec"`
	// Overlay is the only one with which they don't run. Empty: all.
	Overlay string `json:"overlay,omitempty"`
	// Reason says why.
	Reason string `json:"reason"`
}

// selection is what runs with one overlay.
type selection struct {
	suites []suite
	skips  []skip
	// specs are the names of those that run, by suite, and skipped those that don't, by
	// the reason.
	specs, skipped map[string][]string
}

// home is the folder of this package.
func home() string { return filepath.Join(apiserver.Repository(), "test", "e2e", "upstream") }

// suites are those of suites.yaml; none if it can't be read, which newSelection reports.
func suites() (all []suite) {
	_ = read("suites.yaml", &all) // newSelection reads it, too
	return all
}

// newSelection reads the lists, and compares them with the specs that there are. An entry
// that matches none is an error: the specs are called otherwise now, or are gone.
func newSelection(ctx context.Context, overlay string) (*selection, error) {
	s := &selection{specs: map[string][]string{}, skipped: map[string][]string{}}
	if err := errors.Join(read("suites.yaml", &s.suites), read("skips.yaml", &s.skips)); err != nil {
		return nil, err
	}
	known := map[string][]string{}
	for _, one := range s.suites {
		specs, err := one.list(ctx)
		if err != nil {
			return nil, err
		}
		known[one.Name] = specs
	}
	if err := s.sort(known, overlay); err != nil {
		return nil, err
	}
	return s, nil
}

// sort finds which specs run, of those that each suite knows.
func (s *selection) sort(known map[string][]string, overlay string) error {
	all := slices.Concat(slices.Collect(maps.Values(known))...)
	skips, problems := s.compile()
	for i, entry := range s.skips {
		if skips[i] != nil && !slices.ContainsFunc(all, skips[i].MatchString) {
			problems = append(problems, fmt.Errorf("skips.yaml: no spec matches %q", entry.Spec))
		}
		if entry.Reason == "" {
			problems = append(problems, fmt.Errorf("skips.yaml: %q has no reason", entry.Spec))
		}
	}
	for i := range s.suites {
		name := s.suites[i].Name
		wanted, err := s.suites[i].wanted()
		problems = append(problems, err...)
		for _, one := range wanted {
			if !slices.ContainsFunc(known[name], one.MatchString) {
				problems = append(problems, fmt.Errorf("suites.yaml: no spec of suite %s matches %q", name, one))
			}
		}
		s.choose(name, known[name], wanted, s.reasons(skips, overlay))
	}
	s.suites = slices.DeleteFunc(s.suites, func(one suite) bool { return len(s.specs[one.Name]) == 0 })
	return errors.Join(problems...)
}

func (s *selection) compile() (skips []*regexp.Regexp, problems []error) {
	for _, entry := range s.skips {
		expression, err := regexp.Compile(entry.Spec)
		skips = append(skips, expression)
		if err != nil {
			problems = append(problems, fmt.Errorf("skips.yaml: %w", err))
		}
	}
	return skips, problems
}

// choose sorts specs into those that a suite runs and those that it doesn't.
func (s *selection) choose(name string, known []string, wanted []*regexp.Regexp, why func(string) string) {
	narrow := regexp.MustCompile(os.Getenv("STOWAGE_UPSTREAM_FOCUS"))
	for _, spec := range known {
		if !narrow.MatchString(spec) || !slices.ContainsFunc(wanted, func(one *regexp.Regexp) bool { return one.MatchString(spec) }) {
			continue
		}
		if reason := why(spec); reason != "" {
			s.skipped[reason] = append(s.skipped[reason], spec)
		} else {
			s.specs[name] = append(s.specs[name], spec)
		}
	}
}

// reasons finds why a spec doesn't run with an overlay; "" if it does.
func (s *selection) reasons(skips []*regexp.Regexp, overlay string) func(string) string {
	return func(spec string) string {
		for i, entry := range s.skips {
			if skips[i] != nil && (entry.Overlay == "" || entry.Overlay == overlay) && skips[i].MatchString(spec) {
				return entry.Reason
			}
		}
		return ""
	}
}

// wanted are the expressions of a suite's specs: those of CI if that is what is asked for,
// or those that were asked for by name.
func (s *suite) wanted() (wanted []*regexp.Regexp, problems []error) {
	chosen := s.Specs
	if os.Getenv("STOWAGE_UPSTREAM") == "ci" {
		chosen = s.CI
	}
	for _, one := range chosen {
		expression, err := regexp.Compile(one)
		if err != nil {
			problems = append(problems, fmt.Errorf("suites.yaml: %w", err))
			continue
		}
		wanted = append(wanted, expression)
	}
	return wanted, problems
}

// list is the names of all specs, with the driver files of the suite.
func (s *suite) list(ctx context.Context) ([]string, error) {
	program, err := apiserver.Binary("e2e.test")
	if err != nil {
		return nil, err
	}
	output, err := exec.CommandContext(ctx, program, append(s.driverFlags(), "--list-tests")...).Output()
	if err != nil {
		return nil, fmt.Errorf("listing the specs of e2e.test: %w", err)
	}
	return specsIn(string(output)), nil
}

// specsIn is the names in a list of e2e.test's: a line each, after its place in the code.
func specsIn(list string) (specs []string) {
	place := regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)$`)
	for line := range strings.Lines(list) {
		if found := place.FindStringSubmatch(strings.TrimRight(line, "\n")); found != nil {
			specs = append(specs, found[1])
		}
	}
	return specs
}

// driverFlags hand the driver files to e2e.test.
func (s *suite) driverFlags() (flags []string) {
	for _, driver := range s.Drivers {
		flags = append(flags, "--storage.testdriver="+filepath.Join(home(), "drivers", driver+".yaml"))
	}
	return flags
}

func read(name string, into any) error {
	content, err := os.ReadFile(filepath.Join(home(), name))
	if err == nil {
		err = yaml.UnmarshalStrict(content, into)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}
