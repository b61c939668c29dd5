package controllers

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/stowage-dev/stowage/test/apiserver"
)

// apiServer is how the suite's one API server is reached.
var apiServer *rest.Config

func TestControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	// A second, as it is by default, is soon over on a busy machine, and proves nothing.
	SetDefaultEventuallyTimeout(30 * time.Second)
	suite, reporter := GinkgoConfiguration()
	suite.RandomizeAllSpecs = true
	RunSpecs(t, "Controllers", suite, reporter)
}

var _ = BeforeSuite(func() {
	server, err := apiserver.Start(apiserver.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	apiServer = server.Config
})
