package controllers

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/program"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/specs"
)

// apiServer is a client of the suite's one API server. All specs share it, since each new
// one would ask the server first for all that it serves.
var apiServer client.WithWatch

// managers are clients with the rights of a manager of each scope.
var managers = map[reconciler.Scope]client.WithWatch{}

func TestControllers(t *testing.T) {
	// A second, as it is by default, is soon over on a busy machine, and proves nothing.
	SetDefaultEventuallyTimeout(30 * time.Second)
	specs.Run(t, "Controllers")
}

var _ = BeforeSuite(func() {
	server, err := apiserver.Start(apiserver.Options{Rights: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	scheme, err := program.Scheme()
	Expect(err).NotTo(HaveOccurred())
	apiServer, err = client.NewWithWatch(server.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	for scope, groups := range map[reconciler.Scope][]string{reconciler.ClassesScope: nil, reconciler.ClusterScope: {apiserver.ClusterScope}} {
		managers[scope], err = client.NewWithWatch(server.As(apiserver.Manager(groups...)), client.Options{Scheme: scheme, Mapper: apiServer.RESTMapper()})
		Expect(err).NotTo(HaveOccurred())
	}
})
