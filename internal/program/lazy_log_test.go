package program

import (
	"errors"
	"slices"
	"testing"

	"github.com/go-logr/logr/funcr"
)

func TestValuesAreEncodedWhenSomethingIsLogged(t *testing.T) {
	var lines []string
	log := lazily(funcr.New(func(prefix, args string) { lines = append(lines, prefix+": "+args) }, funcr.Options{}))
	counted := 0
	claim := log.WithName("bind").WithValues("claim", funcr.PseudoStruct{}, "read", counter{&counted})

	claim.WithValues("volume", "a")
	if counted != 0 {
		t.Errorf("values were encoded %d times before anything was logged", counted)
	}
	claim.WithValues("volume", "b").Info("bound", "writes", 4)
	claim.Error(errors.New("conflict"), "again")

	want := []string{
		`bind: "level"=0 "msg"="bound" "claim"={} "read"="once" "volume"="b" "writes"=4`,
		`bind: "msg"="again" "error"="conflict" "claim"={} "read"="once"`,
	}
	if !slices.Equal(lines, want) {
		t.Errorf("logged\n%q, want\n%q", lines, want)
	}
}

// counter counts how often a logger encodes it.
type counter struct{ times *int }

func (c counter) MarshalLog() any {
	*c.times++
	return "once"
}
