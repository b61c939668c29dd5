package stock_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend/nfs/nfstest"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/cluster"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// What each backend, and the class that it keeps, is called.
const (
	disks = "disks" // of driver local.stowage.dev
	share = "share" // of driver nfs.stowage.dev
	cloud = "cloud" // of driver gce.stowage.dev

	namespace = "stowage-system"
)

// stowage is all of Stowage but the pods that it runs in.
type stowage struct {
	dir     string
	share   *nfstest.Server
	cloud   string
	manager *cluster.Program
	// programs are all that were ever started.
	programs []*cluster.Program
}

// install applies config/default, but for the workloads, and the rights of scope cluster.
func (s *stowage) install(ctx context.Context) {
	GinkgoHelper()
	kubectl, err := apiserver.Binary("kubectl")
	Expect(err).NotTo(HaveOccurred())
	for _, part := range []string{"crd", "rbac", "rbac/cluster-scope", "csidrivers"} {
		command := exec.CommandContext(ctx, kubectl, "apply", "--server-side",
			"--kubeconfig="+filepath.Join(s.dir, "kubeconfigs", "admin"), "-k", filepath.Join(apiserver.Repository(), "config", part))
		output, err := command.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", output)
	}
	Eventually(func() error { return users.List(ctx, &stowagev1alpha1.NodeDiskList{}) }).Should(Succeed())
}

func (s *stowage) startCloud(ctx context.Context) {
	GinkgoHelper()
	address := freeAddress()
	s.cloud = "http://" + address
	arguments := []string{
		"--listen=" + address, "--folder=" + filepath.Join(s.dir, "cloud"),
		"--project=" + project, "--zone=" + zoneA + "," + zoneB, "--latency=100ms", "--log-level=1",
	}
	for _, node := range nodes {
		arguments = append(arguments, "--instance="+node.zone+"/"+node.name)
	}
	s.run(ctx, cluster.ProgramOptions{Name: "gce-mock", Ready: s.cloud + "/_mock/healthz", Arguments: arguments})
}

// startManager starts a manager of a scope, as its service account, with further flags.
func (s *stowage) startManager(ctx context.Context, scope string, flags ...string) {
	GinkgoHelper()
	kubeconfig := s.accountKubeconfig(ctx, "stowage-manager", nil)
	s.manager = s.run(ctx, cluster.ProgramOptions{Name: "manager", Probe: freeAddress(), Arguments: append([]string{
		"--kubeconfig=" + kubeconfig, "--metrics-bind-address=0", "--log-format=console",
		"--scope=" + scope, "--leader-election-namespace=" + namespace, "--local-base=" + s.base(),
	}, flags...)})
}

// startAgents starts the agent of each node, with a tmpfs for a disk that no other
// process sees.
func (s *stowage) startAgents(ctx context.Context) {
	GinkgoHelper()
	Expect(os.MkdirAll(s.base(), 0o755)).To(Succeed())
	agent, err := cluster.ProgramPath("node-agent")
	Expect(err).NotTo(HaveOccurred())
	unshare, err := exec.LookPath("unshare")
	Expect(err).NotTo(HaveOccurred())
	for _, node := range nodes {
		object := &corev1.Node{}
		Expect(users.Get(ctx, client.ObjectKey{Name: node.name}, object)).To(Succeed())
		kubeconfig := s.accountKubeconfig(ctx, "stowage-node-agent", object)
		probe := freeAddress()
		s.run(ctx, cluster.ProgramOptions{
			Name: "node-agent-" + node.name, Path: unshare, Ready: "http://" + probe + "/readyz",
			Arguments: []string{
				"--mount", "sh", "-c", `mount -t tmpfs -o size="$1" disk "$2" && mkdir -p "$2/disks" && shift 2 && exec "$@"`, "sh",
				node.disk, s.base(), agent, "--kubeconfig=" + kubeconfig, "--node-name=" + node.name, "--local-base=" + s.base(),
				"--metrics-bind-address=0", "--health-probe-bind-address=" + probe, "--log-format=console",
				"--root-dir=" + filepath.Join(s.dir, "root-"+node.name),
			},
		})
	}
}

func (s *stowage) base() string { return filepath.Join(s.dir, "local") }

// run starts a program until the suite ends.
func (s *stowage) run(ctx context.Context, options cluster.ProgramOptions) *cluster.Program {
	GinkgoHelper()
	options.LogFile = plane.Log(options.Name)
	program := cluster.NewProgram(options)
	s.programs = append(s.programs, program)
	Expect(program.StartReady(ctx)).To(Succeed())
	return program
}

// stop stops what runs, the last first.
func (s *stowage) stop() error {
	var problems []error
	for _, program := range slices.Backward(s.programs) {
		problems = append(problems, program.Stop())
	}
	return errors.Join(problems...)
}

func freeAddress() string {
	GinkgoHelper()
	address, err := cluster.FreeAddress()
	Expect(err).NotTo(HaveOccurred())
	return address
}

// createBackends creates one StorageBackend of each type, and a class of each with the
// other binding mode, named for it.
func (s *stowage) createBackends(ctx context.Context) {
	GinkgoHelper()
	growing := &stowagev1alpha1.StorageClassTemplate{AllowVolumeExpansion: true}
	create(ctx,
		LocalBackend(disks, func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.Local.Path = stowagev1alpha1.AbsolutePath(filepath.Join(s.base(), "disks"))
			object.Spec.StorageClass = growing
		}),
		LocalBackend(share, func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.Local, object.Spec.StorageClass = nil, growing
			object.Spec.NFS = &stowagev1alpha1.NFSBackend{
				Server: nfstest.Host, Path: nfstest.Share, MountOptions: nfstest.Ports(s.share.Port()),
				DirectoryTemplate: "{{namespace}}/{{name}}-{{uid}}",
				Access:            stowagev1alpha1.NFSAccess{UID: int64(os.Getuid()), GID: int64(os.Getgid()), Mode: "0770"},
			}
		}),
		LocalBackend(cloud, func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.Local, object.Spec.StorageClass = nil, growing
			object.Spec.GCE = &stowagev1alpha1.GCEBackend{Project: project, Zones: []string{zoneA, zoneB}, Endpoint: s.cloud + "/compute/v1/"}
		}))
	for name, other := range map[string]storagev1.VolumeBindingMode{
		disks: storagev1.VolumeBindingImmediate, share: storagev1.VolumeBindingWaitForFirstConsumer, cloud: storagev1.VolumeBindingImmediate,
	} {
		class := &storagev1.StorageClass{}
		Eventually(func() error { return users.Get(ctx, client.ObjectKey{Name: name}, class) }).Should(Succeed())
		create(ctx, func() *storagev1.StorageClass {
			class := Class(name+"-"+map[bool]string{true: "now", false: "later"}[other == storagev1.VolumeBindingImmediate], class.Provisioner, class.Parameters)
			class.VolumeBindingMode, class.AllowVolumeExpansion = &other, new(true)
			return class
		}())
	}
}
