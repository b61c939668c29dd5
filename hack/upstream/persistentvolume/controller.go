// Package persistentvolume stands in for upstream's package of that name in its
// integration tests: the same constructor and the same parameters, but the
// controller is Stowage's manager, a process of its own, with --scope=cluster.
//
// Volume plug-ins, which upstream's controller calls, are called by a provisioner
// outside of the manager. The package needs STOWAGE_REPOSITORY and STOWAGE_LOGS.
package persistentvolume

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	storageinformers "k8s.io/client-go/informers/storage/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/volume"
)

const namespace = "stowage-system"

// ControllerParameters are upstream's. The informers and the period are not used: the
// manager has its own.
type ControllerParameters struct {
	KubeClient                clientset.Interface
	SyncPeriod                time.Duration
	VolumePlugins             []volume.VolumePlugin
	VolumeInformer            coreinformers.PersistentVolumeInformer
	ClaimInformer             coreinformers.PersistentVolumeClaimInformer
	ClassInformer             storageinformers.StorageClassInformer
	PodInformer               coreinformers.PodInformer
	NodeInformer              coreinformers.NodeInformer
	EnableDynamicProvisioning bool
}

// PersistentVolumeController is a manager that can be run.
type PersistentVolumeController struct {
	name        string
	proxy       *proxy
	kubeconfig  string
	provisioner *provisioner
	fail        func(format string, arguments ...any)
}

var controllers atomic.Int32

// testContext is what a test's context is, besides a context.
type testContext interface {
	Name() string
	Errorf(format string, arguments ...any)
}

// NewController installs Stowage's CRDs. The context is the test's.
func NewController(ctx context.Context, parameters ControllerParameters) (*PersistentVolumeController, error) {
	of, ok := ctx.(testContext)
	if !ok {
		return nil, fmt.Errorf("the context of a test is its test, not a %T", ctx)
	}
	proxy, err := serve(parameters.KubeClient)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s-%d", strings.NewReplacer("/", "_", " ", "_").Replace(of.Name()), controllers.Add(1))
	c := &PersistentVolumeController{
		name: name, proxy: proxy, kubeconfig: filepath.Join(os.Getenv("STOWAGE_LOGS"), name+".kubeconfig"),
		provisioner: newProvisioner(parameters), fail: of.Errorf,
	}
	if err := os.WriteFile(c.kubeconfig, proxy.kubeconfig(), 0o600); err != nil {
		return nil, fmt.Errorf("writing the manager's kubeconfig: %w", err)
	}
	if err := c.install(ctx, parameters.KubeClient); err != nil {
		proxy.close()
		return nil, err
	}
	return c, nil
}

func (c *PersistentVolumeController) install(ctx context.Context, client clientset.Interface) error {
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the manager's namespace: %w", err)
	}
	crds := filepath.Join(os.Getenv("STOWAGE_REPOSITORY"), "config", "crd")
	for _, arguments := range [][]string{
		{"apply", "--server-side", "-k", crds},
		{"wait", "--for=condition=established", "--timeout=60s", "crd", "--all"},
	} {
		output, err := exec.CommandContext(ctx, "kubectl", append([]string{"--kubeconfig=" + c.kubeconfig}, arguments...)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("installing Stowage's CRDs: kubectl %s: %w: %s", arguments[0], err, output)
		}
	}
	return nil
}

// Run runs the manager, and the provisioner, until the test is over. A manager that
// ends before that fails the test.
func (c *PersistentVolumeController) Run(ctx context.Context) {
	defer c.proxy.close()
	provisioned := make(chan struct{})
	go func() {
		defer close(provisioned)
		c.provisioner.run(ctx)
	}()
	if err := c.runManager(ctx); err != nil && ctx.Err() == nil {
		c.fail("the manager: %v", err)
	}
	<-provisioned
}
