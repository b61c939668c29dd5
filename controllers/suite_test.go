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
	server, err := apiserver.Start(apiserver.Options{Rights: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	_, err = envtest.InstallCRDs(server.Config, envtest.CRDInstallOptions{Paths: []string{snapshotCRDs()}, ErrorIfPathMissing: true})
	Expect(err).NotTo(HaveOccurred())
	scheme, err := program.Scheme()
	Expect(err).NotTo(HaveOccurred())
	apiServer, err = client.NewWithWatch(server.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	mirrored = newMirror(apiServer)
	for scope, groups := range map[reconciler.Scope][]string{reconciler.ClassesScope: nil, reconciler.ClusterScope: {apiserver.ClusterScope}} {
		config := server.As(apiserver.Manager(groups...))
		managerConfigs[scope] = config
		managers[scope], err = client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: apiServer.RESTMapper()})
		Expect(err).NotTo(HaveOccurred())
	}
})

// snapshotCRDs is where the module of their types has the CRDs of snapshots.
func snapshotCRDs() string {
	GinkgoHelper()
	const module = "github.com/kubernetes-csi/external-snapshotter/client/v8"
	found, err := exec.CommandContext(context.Background(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	Expect(err).NotTo(HaveOccurred())
	return filepath.Join(strings.TrimSpace(string(found)), "config", "crd")
}
