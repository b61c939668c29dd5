package program

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stowage-dev/stowage/internal/effect"
)

func TestAManagersOwnLinesAreForDevelopersAndItsErrorsAreThereOnce(t *testing.T) {
	fails := effect.Reported[string](reconcile.TypedFunc[string](func(context.Context, string) (reconcile.Result, error) {
		return reconcile.Result{}, errors.New("away")
	}))
	for verbosity, want := range [][]string{
		{`"msg"="Reconciler error" "error"="away" "name"="x"`},
		{`"level"=1 "msg"="Starting workers" "name"="x"`, `"msg"="Reconciler error" "error"="away" "name"="x"`},
	} {
		var lines []string
		log := Quiet(lazily(funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{Verbosity: verbosity}))).WithName("it").WithValues("name", "x")
		key := string(rune('a' + verbosity))
		log.Info("Starting workers")
		log.V(5).Info("Reconciling")
		for range 3 {
			_, err := fails.Reconcile(t.Context(), key)
			log.Error(err, "Reconciler error")
		}
		if !slices.Equal(lines, want) {
			t.Errorf("at level %d: got %q", verbosity, lines)
		}
	}
}
