package guest_test

import "testing"

func TestASkippedTestIsAProblem(t *testing.T) {
	for name, test := range map[string]struct {
		output string
		failed bool
		counts string
		well   bool
	}{
		"all passed":             {"--- PASS: TestA (0.00s)\n", false, "1 passed, 0 failed, 0 skipped", true},
		"one skipped":            {"--- PASS: TestA (0.00s)\n--- SKIP: TestB (0.00s)\n", false, "1 passed, 0 failed, 1 skipped", false},
		"one failed":             {"--- FAIL: TestA (0.00s)\n", true, "0 passed, 1 failed, 0 skipped", false},
		"it crashed":             {"--- PASS: TestA (0.00s)\npanic: no\n", true, "1 passed, 0 failed, 0 skipped", false},
		"nothing ran":            {"PASS\n", false, "0 passed, 0 failed, 0 skipped", false},
		"a subtest was skipped":  {"--- PASS: TestA (0.00s)\n    --- SKIP: TestA/xfs (0.00s)\n", false, "0 passed, 0 failed, 1 skipped", false},
		"what a test only wrote": {"log: --- FAIL: TestA\n--- PASS: TestA (0.00s)\n", false, "1 passed, 0 failed, 0 skipped", true},
	} {
		t.Run(name, func(t *testing.T) {
			got := read(test.output)
			if err := got.problem(test.failed); got.String() != test.counts || (err == nil) != test.well {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}
