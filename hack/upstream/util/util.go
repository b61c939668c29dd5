// Package util stands in for upstream's package of that name in its integration tests:
// the same scheduler, but an API server that serves custom resources, too, which
// Stowage's are.
package util

import (
	"testing"

	"k8s.io/apiserver/pkg/admission"
	clientset "k8s.io/client-go/kubernetes"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app/testing"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/kubernetes/test/integration/util"
	"k8s.io/kubernetes/test/utils/ktesting"
)

// TestContext is upstream's.
type TestContext = util.TestContext

// What upstream has is used as it is.
var (
	InitTestSchedulerWithOptions = util.InitTestSchedulerWithOptions
	SyncSchedulerInformerFactory = util.SyncSchedulerInformerFactory
)

// InitTestAPIServer starts a whole API server, with the admission plug-ins that upstream's
// leaves out, and a namespace.
func InitTestAPIServer(t *testing.T, prefix string, _ admission.Interface) *TestContext {
	ctx := ktesting.Init(t)
	server := apiserver.StartTestServerOrDie(t, nil, []string{
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,Priority,StorageObjectInUseProtection",
	}, framework.SharedEtcd())
	made := &TestContext{
		Ctx: ctx, KubeConfig: server.ClientConfig, ClientSet: clientset.NewForConfigOrDie(server.ClientConfig),
		CloseFn: func() {
			ctx.Cancel("tearing down apiserver")
			server.TearDownFn()
		},
	}
	made.NS = framework.CreateNamespaceOrDie(made.ClientSet, prefix+"test", t)
	t.Cleanup(func() { util.CleanupTest(t, made) })
	return made
}
