package sanity_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"github.com/google/uuid"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"google.golang.org/grpc"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/named"
	"github.com/stowage-dev/stowage/internal/csicontroller"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

const (
	// sanityTime is how long a suite may take on a busy machine: one of its specs attaches as many
	// disks as a node can have. A call to a guest waits callMargin longer.
	sanityTime = 6 * time.Minute
	callMargin = 30 * time.Second
	// callTime is how long the backend csi waits for the socket.
	callTime = 30 * time.Second
)

// Plan is what one suite needs, in paths of the host that it runs on.
type Plan struct {
	Subject Subject
	// Kubeconfig is an administrator's, and Base the folder of local volumes.
	Kubeconfig, Base string
	// Socket is that of the Controller service. Empty: the suite serves it itself, as the manager does, since no
	// socket leads from one kernel to another.
	Socket string
	// KubeletDir has the driver's sockets; Folder and Log are for the suite.
	KubeletDir, Folder, Log string
}

func (p Plan) outcomeFile() string { return filepath.Join(p.Folder, p.Subject.Name+"-outcome.json") }

// The kubelet's paths for a volume that is staged, and for the parent of the one at which
// a pod has it. A suite has one at a time, which is named after it.
func (p Plan) staging() string {
	return filepath.Join(p.KubeletDir, "plugins", "kubernetes.io", "csi", p.Subject.Driver, p.Subject.Name, "globalmount")
}

func (p Plan) targets() string {
	return filepath.Join(p.KubeletDir, "pods", "00000000-0000-4000-8000-000000000000", "volumes", "kubernetes.io~csi", p.Subject.Name)
}

// runSanity runs the suite that a file describes, and writes how it ended beside it.
func runSanity(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var p Plan
	if err := json.Unmarshal(content, &p); err != nil {
		return err
	}
	ctx := context.Background()
	endpoint, err := register(ctx, p.KubeletDir, p.Subject.Driver)
	if err != nil {
		return err
	}
	of, err := p.open(ctx)
	if err != nil {
		return err
	}
	got := p.run(endpoint)
	if got.Claims, err = claims(ctx, endpoint, p.controllerSocket()); err != nil {
		return err
	}
	if got.Left, err = of.held(ctx); err != nil {
		return err
	}
	if content, err = json.Marshal(got); err != nil {
		return err
	}
	return os.WriteFile(p.outcomeFile(), content, 0o600)
}

func (p Plan) ownSocket() string { return filepath.Join(p.Folder, p.Subject.Name+".sock") }

func (p Plan) controllerSocket() string { return "unix:" + cmp.Or(p.Socket, p.ownSocket()) }

// open opens the backend, and serves it where no manager does.
func (p Plan) open(ctx context.Context) (*served, error) {
	if p.Socket == "" {
		return p.serve(ctx)
	}
	return open(ctx, p)
}

// serve serves the Controller calls until the context ends, as the manager does.
func (p Plan) serve(ctx context.Context) (*served, error) {
	s, err := open(ctx, p)
	if err != nil {
		return nil, err
	}
	socket := p.ownSocket()
	server, err := csicontroller.NewServer(s.Service, socket, logr.Discard())
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	return s, scenario.Eventually(ctx, func() error {
		select {
		case err := <-ended:
			return fmt.Errorf("the server ended: %w", err)
		default:
		}
		_, err := os.Stat(socket)
		return err
	})
}

// verdict takes Ginkgo's calls of a test; the report has them all.
type verdict struct{}

func (verdict) Fail() {}

// run runs csi-sanity.
func (p Plan) run(endpoint string) (got Outcome) {
	if err := errors.Join(os.MkdirAll(filepath.Dir(p.staging()), 0o750), os.MkdirAll(filepath.Dir(p.targets()), 0o750)); err != nil {
		return Outcome{Trouble: err.Error()}
	}
	config := p.config(endpoint)
	gomega.RegisterFailHandler(ginkgo.Fail)
	tests := sanity.GinkgoTest(&config)
	defer tests.Finalize()
	ginkgo.ReportAfterSuite("the outcome", func(report ginkgo.Report) { got = outcomeOf(report) })
	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.Timeout, suite.RandomizeAllSpecs = sanityTime, true
	reporter.NoColor, reporter.Verbose = true, true
	ginkgo.RunSpecs(verdict{}, fmt.Sprintf("%s, %s volumes", p.Subject.Driver, p.Subject.Name), suite, reporter)
	return got
}

func (p Plan) config(endpoint string) sanity.TestConfig {
	config := sanity.NewTestConfig()
	config.Address, config.ControllerAddress = endpoint, p.controllerSocket()
	config.DialOptions = append(config.DialOptions, grpc.WithUnaryInterceptor(withController))
	config.TargetPath, config.StagingPath = p.targets(), p.staging()
	config.TestVolumeSize, config.TestVolumeExpandSize = p.Subject.Bytes, p.Subject.Larger
	config.TestVolumeParameters = map[string]string{stowagev1alpha1.BackendParameter: p.Subject.Backend}
	config.TestNodeVolumeAttachLimit, config.TestVolumeMutableParameters = p.Subject.Limited, p.Subject.Mutable
	config.IDGen = ids{}
	if p.Subject.Block {
		config.TestVolumeAccessType = "block"
	}
	return config
}

// withController adds to what the node's plug-in says of itself that there is a
// Controller service: the node's, truly, says that it has none, and csi-sanity would
// leave out what needs volumes.
func withController(ctx context.Context, method string, req, answer any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
	err := call(ctx, method, req, answer, conn, options...)
	if plugin, is := answer.(*csi.GetPluginCapabilitiesResponse); is && err == nil {
		plugin.Capabilities = append(plugin.Capabilities, &csi.PluginCapability{Type: &csi.PluginCapability_Service_{
			Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE},
		}})
	}
	return err
}

// ids are ids as calls make them, of what isn't there.
type ids struct{}

// GenerateUniqueValidVolumeID is that of a volume which was never made.
func (ids) GenerateUniqueValidVolumeID() string {
	return backend.VolumeID(named.UID("", "", "", uuid.NewString()), 1)
}

// GenerateInvalidVolumeID is no volume's.
func (ids) GenerateInvalidVolumeID() string { return "no-volume-is-called-this" }

// GenerateUniqueValidNodeID is that of a node which there isn't.
func (ids) GenerateUniqueValidNodeID() string { return "node-" + uuid.NewString() }

// GenerateInvalidNodeID is no node's.
func (ids) GenerateInvalidNodeID() string { return "No Node" }
