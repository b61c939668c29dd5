package nodemanager_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/specs"
)

// settled is how long the agent may take for what it does at once or after a wait. It is
// less than the minute after which it reconciles again without an event.
const settled = 40 * time.Second

var (
	server *apiserver.Server
	types  = runtime.NewScheme()
	// realClock, because a guard looks at what the API server wrote.
	realClock = clock.RealClock{}
	admin     client.Client
)

// Tests that run before the specs may take so long that controller-runtime gives up on a logger.
func TestMain(m *testing.M) {
	ctrl.SetLogger(GinkgoLogr)
	mounttest.Main(m)
}

func TestNodeManager(t *testing.T) {
	mounttest.NeedsRoot(t)
	specs.Run(t, "node manager")
}

var _ = BeforeSuite(func() {
	SetDefaultEventuallyTimeout(settled)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	SetDefaultConsistentlyDuration(time.Second)
	Expect(scheme.AddToScheme(types)).To(Succeed())
	Expect(stowagev1alpha1.AddToScheme(types)).To(Succeed())

	var err error
	server, err = apiserver.Start(apiserver.Options{Rights: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	admin, err = client.New(server.Config, client.Options{Scheme: types})
	Expect(err).NotTo(HaveOccurred())
})
