package guest

import (
	"strings"
	"testing"
)

const polled = `STEP: all take the images
  Automatically polling progress:
 runs pods (Spec Runtime: 1m0s)
      At [By Step] all take the images (Step Runtime: 1m0s)

      Spec Goroutine
      goroutine 12 [select]
        github.com/stowage-dev/stowage/test/harness/scenario.Within()

      Begin Additional Progress Reports >>
        it still doesn't hold: nothing answers
      << End Additional Progress Reports

      Goroutines of Interest
      goroutine 13 [select]
  STEP: all are Ready
`

const failed = `  [TIMEDOUT] A spec timeout occurred

  This is the Progress Report generated when the spec timeout occurred:
      Spec Goroutine
      goroutine 12 [select]
  ------------------------------
`

func TestReportsOnSpecsThatRunHaveNoStacks(t *testing.T) {
	var got strings.Builder
	p := &progress{to: &got}
	for _, part := range strings.SplitAfter(polled+failed, "r") { // a write needn't end with a line
		if n, err := p.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	shown, after, _ := strings.Cut(got.String(), "[TIMEDOUT]")
	for _, want := range []string{"At [By Step] all take the images", "nothing answers", "STEP: all are Ready"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q isn't shown:\n%s", want, shown)
		}
	}
	if strings.Contains(shown, "goroutine 1") {
		t.Errorf("it shows a stack:\n%s", shown)
	}
	if !strings.Contains(after, "goroutine 12") {
		t.Errorf("the failure has no stack:\n%s", after)
	}
}
