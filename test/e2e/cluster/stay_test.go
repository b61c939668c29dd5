package cluster_test

import (
	"os"

	. "github.com/onsi/ginkgo/v2"
)

// stays reports whether the cluster is to stay after the specs.
func stays() bool { return os.Getenv("STOWAGE_E2E_STAY") != "" }

// stay adds a last spec, which keeps the cluster for people to look at, if they asked for it.
func stay() {
	if !stays() {
		return
	}
	It("the cluster stays until Ctrl-C", Label("stay"), func(ctx SpecContext) {
		if err := cluster.Stay(ctx); err != nil {
			Fail(err.Error())
		}
	})
}
