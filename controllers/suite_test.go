package controllers

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/program"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/specs"
)

// apiServer is a client of the suite's one API server. All specs share it, since each new
// one would ask the server first for all that it serves.
var apiServer client.WithWatch

// mirrored has the objects of the API server: specs read it there.
var mirrored *mirror

// managers are clients with the rights of a manager of each scope.
var managers = map[reconciler.Scope]client.WithWatch{}

func TestControllers(t *testing.T) {
	// A second, as it is by default, is soon over on a busy machine, and proves nothing.
	SetDefaultEventuallyTimeout(30 * time.Second)
	specs.Run(t, "Controllers")
}

// managerConfigs are those of managers in each scope.
var managerConfigs = map[reconciler.Scope]*rest.Config{}

var _ = BeforeSuite(func() {
	server, err := apiserver.Start(apiserver.Options{OneByOne: true, Rights: true, Gates: "CrossNamespaceVolumeDataSource=true"})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	keepAnswers(server.Config)
	_, err = envtest.InstallCRDs(server.Config, envtest.CRDInstallOptions{Paths: []string{snapshotCRDs(), grantCRD()}, ErrorIfPathMissing: true})
	Expect(err).NotTo(HaveOccurred())
	scheme, err := program.Scheme()
	Expect(err).NotTo(HaveOccurred())
	apiServer, err = client.NewWithWatch(server.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	Expect(apiServer.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}})).To(Succeed())
	mirrored = newMirror(apiServer)
	for scope, groups := range map[reconciler.Scope][]string{reconciler.ClassesScope: nil, reconciler.ClusterScope: {apiserver.ClusterScope}} {
		config := server.As(apiserver.Manager(groups...))
		keepAnswers(config)
		managerConfigs[scope] = config
		managers[scope], err = client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: apiServer.RESTMapper()})
		Expect(err).NotTo(HaveOccurred())
	}
})

// grantCRD is where the module of its type has the CRD of ReferenceGrants.
func grantCRD() string {
	GinkgoHelper()
	return filepath.Join(module("sigs.k8s.io/gateway-api"), "config", "crd", "standard", "gateway.networking.k8s.io_referencegrants.yaml")
}

// snapshotCRDs is where the module of their types has the CRDs of snapshots.
func snapshotCRDs() string {
	GinkgoHelper()
	return filepath.Join(module("github.com/kubernetes-csi/external-snapshotter/client/v8"), "config", "crd")
}

// module is the folder of a module.
func module(path string) string {
	GinkgoHelper()
	found, err := exec.CommandContext(context.Background(), "go", "list", "-m", "-f", "{{.Dir}}", path).Output()
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(string(found))
}
