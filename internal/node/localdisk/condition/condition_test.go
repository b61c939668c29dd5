package condition

import (
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

func TestTheFirstKindThatAnErrorWrapsDecidesItsReason(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	reasons := Reasons{{first, "First"}, {second, "Second"}}
	for err, want := range map[error]string{
		fmt.Errorf("%w: %w", second, first): "First",
		fmt.Errorf("doing it: %w", second):  "Second",
		errors.New("another"):               stowagev1alpha1.ReasonUnavailable,
	} {
		if got := reasons.Of(err); got != want {
			t.Errorf("%v has reason %s, want %s", err, got, want)
		}
	}
}

func TestAProblemIsNewOnceForEachReason(t *testing.T) {
	of := func(reasons ...string) (conditions []metav1.Condition) {
		for _, reason := range reasons {
			Set(&conditions, metav1.Condition{Type: "Ready", Reason: reason})
		}
		return conditions
	}
	for name, test := range map[string]struct {
		before, now []metav1.Condition
		want        bool
	}{
		"none":                 {nil, nil, false},
		"the first":            {nil, of("Lost"), true},
		"the same":             {of("Lost"), of("Lost"), false},
		"another":              {of("Lost"), of("InUse"), true},
		"after no problem":     {of("Ready"), of("Lost"), true},
		"no problem, at first": {nil, of("Ready"), false},
		"no problem any more":  {of("Lost"), of("Ready"), false},
	} {
		if got := NewProblem(test.before, test.now, "Ready"); (got != nil) != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
