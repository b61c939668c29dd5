// Package docs_test types the commands of README and of all pages below docs, as their reader
// does, on a real API server with the objects of config/default and a manager in --scope=cluster.
// Storage is a fake, and there are no kubelets: what needs more has a mark that says so, and the
// flags of its kubectl commands are checked. CONTRIBUTING.md has the marks.
package docs_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/program"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/specs"
)

// soon is how long what takes a moment may take on a busy machine.
const soon = 30 * time.Second

var (
	server *apiserver.Server
	scheme *runtime.Scheme
	admin  client.Client
	// programs is a folder with kubectl and kubectl-stowage, and home that of the reader, with a
	// kubeconfig.
	programs, home string
)

func TestDocs(t *testing.T) {
	SetDefaultEventuallyTimeout(soon)
	specs.Run(t, "Docs")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	server, err = apiserver.Start(apiserver.Options{OneByOne: true, WithoutCRDs: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	scheme, err = program.Scheme()
	Expect(err).NotTo(HaveOccurred())
	admin, err = client.New(server.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	home = GinkgoT().TempDir()
	kubeconfig, err := server.Kubeconfig("admin", "system:masters")
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(home, "kubeconfig"), kubeconfig, 0o600)).To(Succeed())
	makePrograms(ctx)
	mustType(ctx, GinkgoT().TempDir(), "cd "+apiserver.Repository()+
		" && kubectl apply --server-side -k config/default && kubectl wait crd --all --for=condition=Established")
	startManager()
})

// makePrograms builds the plug-in, and puts it beside kubectl.
func makePrograms(ctx context.Context) {
	GinkgoHelper()
	programs = GinkgoT().TempDir()
	kubectl, err := apiserver.Binary("kubectl")
	Expect(err).NotTo(HaveOccurred())
	Expect(os.Symlink(kubectl, filepath.Join(programs, "kubectl"))).To(Succeed())
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", programs, "./cmd/kubectl-stowage")
	build.Dir = apiserver.Repository()
	output, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
}

// startManager runs the manager until the suite ends. Each kind of storage is a fake.
func startManager() {
	GinkgoHelper()
	mgr, err := ctrl.NewManager(server.Config, ctrl.Options{
		Scheme: scheme, Client: controllers.ClientOptions(), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	Expect(err).NotTo(HaveOccurred())
	var kinds []backend.Kind
	for _, kind := range []stowagev1alpha1.BackendType{stowagev1alpha1.LocalType, stowagev1alpha1.NFSType, stowagev1alpha1.GCEType} {
		kinds = append(kinds, fake.Kind{For: kind, Backend: fake.New()})
	}
	ctx, stop := context.WithCancel(context.Background())
	Expect(controllers.Setup(ctx, mgr, controllers.Options{
		Scope: reconciler.ClusterScope, Backends: backend.NewRegistry(kinds...), Namespace: "stowage-system",
	})).To(Succeed())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = mgr.Start(ctx)
	}()
	DeferCleanup(func() {
		stop()
		<-stopped
	})
}
