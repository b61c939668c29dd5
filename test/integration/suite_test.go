// Package integration runs the whole manager, with its informers, queues and
// workers, against a real API server: what wakes what is proved here, and nothing
// that a suite with direct calls proves already.
package integration_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/apiserver"
)

var (
	config *rest.Config
	scheme = runtime.NewScheme()
	users  client.Client
)

func TestIntegration(t *testing.T) {
	RegisterFailHandler(Fail)
	suite, reporter := GinkgoConfiguration()
	suite.RandomizeAllSpecs = true
	RunSpecs(t, "Integration", suite, reporter)
}

var _ = BeforeSuite(func() {
	server, err := apiserver.Start(apiserver.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	config = server.Config
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(stowagev1alpha1.AddToScheme(scheme)).To(Succeed())
	users, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
})
