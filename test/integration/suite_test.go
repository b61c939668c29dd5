// Package integration runs the whole manager, with its informers, queues and
// workers, against a real API server: what wakes what is proved here, and nothing
// that a suite with direct calls proves already.
package integration_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/program"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/specs"
)

var (
	server *apiserver.Server
	scheme *runtime.Scheme
	users  client.Client
)

func TestIntegration(t *testing.T) {
	specs.Run(t, "Integration")
}

var _ = BeforeSuite(func() {
	var err error
	server, err = apiserver.Start(apiserver.Options{Rights: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	scheme, err = program.Scheme()
	Expect(err).NotTo(HaveOccurred())
	users, err = client.New(server.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
})

// asManager is one with the rights of a manager of a scope.
func asManager(scope reconciler.Scope) *rest.Config {
	if scope == reconciler.ClusterScope {
		return server.As(apiserver.Manager(apiserver.ClusterScope))
	}
	return server.As(apiserver.Manager())
}

// clientOf is a client that reads the API server itself.
func clientOf(config *rest.Config) client.Client {
	GinkgoHelper()
	made, err := client.New(config, client.Options{Scheme: scheme, Mapper: users.RESTMapper()})
	Expect(err).NotTo(HaveOccurred())
	return made
}
