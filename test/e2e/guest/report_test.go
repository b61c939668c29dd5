package guest_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// mayBeSkipped are the tests that a guest can't run, and why.
var mayBeSkipped = map[string]string{
	"TestAVolumeInHugePagesHasGroupAndLimit": "User Mode Linux has no huge pages",
	"TestMemoryIsNeverSwapped":               "tmpfs can be kept from swap since Linux 6.4, and guests have 6.1",
}

// line is what `go test -v` prints when a test ended.
var line = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+)`)

// report is how tests ended, by their names. One that has subtests isn't counted.
type report struct{ passed, failed, skipped []string }

// read reads what `go test -v` prints.
func read(output string) report {
	var got report
	found := line.FindAllStringSubmatch(output, -1)
	for _, match := range found {
		name := match[2]
		hasSubtests := slices.ContainsFunc(found, func(other []string) bool { return strings.HasPrefix(other[2], name+"/") })
		switch {
		case hasSubtests:
		case match[1] == "PASS":
			got.passed = append(got.passed, name)
		case match[1] == "FAIL":
			got.failed = append(got.failed, name)
		default:
			got.skipped = append(got.skipped, name)
		}
	}
	return got
}

func (r report) and(other report) report {
	return report{
		passed:  slices.Concat(r.passed, other.passed),
		failed:  slices.Concat(r.failed, other.failed),
		skipped: slices.Concat(r.skipped, other.skipped),
	}
}

func (r report) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", len(r.passed), len(r.failed), len(r.skipped))
}

// problem is what is wrong with a package's tests, whose program may have failed.
func (r report) problem(failed bool) error {
	unexpected := slices.DeleteFunc(slices.Clone(r.skipped), func(name string) bool {
		_, known := mayBeSkipped[name]
		return known
	})
	switch {
	case failed || len(r.failed) > 0:
		return fmt.Errorf("%s; failed: %s", r, strings.Join(r.failed, ", "))
	case len(unexpected) > 0:
		return fmt.Errorf("%s; not run, though a guest can: %s", r, strings.Join(unexpected, ", "))
	case len(r.passed) == 0:
		return fmt.Errorf("%s: no test ran", r)
	}
	return nil
}
