package nodemanager

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/socket"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/socket/sockettest"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi"
)

// Volumes of another project's driver, which outlives the node manager that calls it.
const (
	killedForeign       = "csi of another project"
	killedForeignBlock  = "csi of another project as block"
	killedForeignInline = "csi of another project, inline"
)

func (n *killedNode) isForeign() bool { return strings.HasPrefix(n.Volume, killedForeign) }

// foreignProgram is the driver's program. It counts what it is busy with.
type foreignProgram struct {
	*sockettest.Driver
	busy atomic.Int64
}

// open is how many callers and calls there are.
func (p *foreignProgram) open() int64 {
	if p == nil {
		return 0
	}
	return p.busy.Load()
}

func (*foreignProgram) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (*foreignProgram) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (p *foreignProgram) HandleConn(_ context.Context, event stats.ConnStats) {
	switch event.(type) {
	case *stats.ConnBegin:
		p.busy.Add(1)
	case *stats.ConnEnd:
		p.busy.Add(-1)
	}
}

func (p *foreignProgram) HandleRPC(_ context.Context, event stats.RPCStats) {
	switch event.(type) {
	case *stats.Begin:
		p.busy.Add(1)
	case *stats.End:
		p.busy.Add(-1)
	}
}

func (n *killedNode) serveForeign(t *testing.T) {
	t.Helper()
	if !n.isForeign() {
		return
	}
	n.program, n.Socket = &foreignProgram{Driver: sockettest.New(t, sockettest.Stage)}, filepath.Join(sockettest.Folder(t), "csi.sock")
	n.program.Data = n.path("base")
	n.program.Serve(t, n.Socket, grpc.StatsHandler(n.program))
}

// withForeign has the other project's driver registered, if the pod has a volume of it.
func (n *killedNode) withForeign(options csi.CallerOptions) csi.CallerOptions {
	if n.isForeign() {
		options.Registered, options.Objects, options.NodeName = registeredAt(n.Socket), foreignObjects{}, "n1"
	}
	return options
}

// registeredAt has a driver whose socket is at a path.
type registeredAt string

func (r registeredAt) Find(name string) (drivers.Foreign, error) {
	if name != sockettest.Name {
		return nil, errors.New("it isn't registered")
	}
	return socket.New(name, string(r), socket.Options{Cluster: foreignObjects{}, Mounts: mount.Kernel{}})
}

// foreignObjects has a driver with all kinds of volumes, which aren't attached.
type foreignObjects struct{ socket.Cluster }

func (foreignObjects) CSIDriver(context.Context, string) (*storagev1.CSIDriver, error) {
	return &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{
		AttachRequired:       new(false),
		RequiresRepublish:    new(true),
		VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral},
		TokenRequests:        []storagev1.TokenRequest{{Audience: "vault"}},
	}}, nil
}

func (foreignObjects) IssuedToken(context.Context, *corev1.Pod, storagev1.TokenRequest) (authenticationv1.TokenRequestStatus, error) {
	return authenticationv1.TokenRequestStatus{Token: "token"}, nil
}

//proves:csi/foreign-republish
func TestAVolumeIsPublishedAgainWhereItsDriverRequiresThat(t *testing.T) {
	mounttest.NeedsRoot(t)
	n := newKilledNode(t, killedForeign)
	reconciler, _, err := n.restart(t.Context())
	mustDo(t, err)
	clock, recorded := reconciler.Clock.(*clocktesting.FakeClock), reconciler.Events.(*events.FakeRecorder).Events
	reconcile := func(times int) {
		for range times {
			result, err := reconciler.Reconcile(t.Context(), nodetest.SomePod)
			mustDo(t, err)
			reconciler.operations.Wait()
			clock.Step(result.RequeueAfter)
		}
	}
	reconcile(passes)
	shown := n.look(t)
	n.program.Calls()

	reconcile(4)
	if calls := n.program.Calls(); !slices.Contains(calls, "publish") || slices.Contains(calls, "stage") {
		t.Errorf("it was called: %v", calls)
	}

	for len(recorded) > 0 {
		<-recorded
	}
	n.program.Does(func(context.Context, string) error { return errors.New("the vault is closed") })
	reconcile(8)
	n.program.Does(nil)
	if len(recorded) != 1 {
		t.Fatalf("%d events", len(recorded))
	}
	if event := <-recorded; !strings.Contains(event, "keeps its earlier content") || !strings.Contains(event, "the vault is closed") {
		t.Errorf("recorded %q", event)
	}
	n.mustBe(t, shown, "after a failure")
}

//proves:csi/foreign-expansion
func TestAVolumeOfAnotherProjectsDriverGrowsWhereAPodHasIt(t *testing.T) {
	mounttest.NeedsRoot(t)
	for name, path := range map[string]string{
		killedForeign:      "pods/pod-1/volumes/kubernetes.io~csi/pv/mount",
		killedForeignBlock: "plugins/kubernetes.io/csi/volumeDevices/publish/pv/pod-1",
	} {
		t.Run(name, func(t *testing.T) {
			n := newKilledNode(t, name)
			n.program.Can(sockettest.Stage, sockettest.Expand)
			reconciler, _, err := n.restart(t.Context())
			mustDo(t, err)
			_, objects := n.volumeOf(name)
			object := objects[1].(*corev1.PersistentVolume)
			object.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
			types := reconciler.Volumes
			if name == killedForeignBlock {
				types = reconciler.Devices
			}
			grower := types[0].(volumes.Grower)
			if table, err := reconciler.Mounter.Table(); err != nil || grower.CanGrow(table, object) {
				t.Errorf("it can grow before a pod has it (%v)", err)
			}
			n.mustSettle(t, "before it grows")

			if table, err := reconciler.Mounter.Table(); err != nil || !grower.CanGrow(table, object) {
				t.Errorf("it can't grow (%v)", err)
			}
			bytes, err := grower.Grow(t.Context(), object)

			request := sockettest.Last[*csispec.NodeExpandVolumeRequest](n.program.Driver)
			if err != nil || bytes != 2<<30 || request.GetVolumePath() != filepath.Join(n.root(), path) || request.GetStagingTargetPath() == "" {
				t.Errorf("it has %d (%v) by %v", bytes, err, request)
			}
		})
	}
}

//proves:csi/foreign-crash
func TestADriverOfAnotherProjectThatCrashesInACallIsCalledAgain(t *testing.T) {
	mounttest.NeedsRoot(t)
	for _, name := range []string{killedForeign, killedForeignBlock, killedForeignInline} {
		t.Run(name, func(t *testing.T) {
			n := newKilledNode(t, name)
			should := n.learn(t)
			for _, method := range []string{"stage", "publish", "unpublish", "unstage"} {
				for when, crash := range map[string]func(){
					"after its work": func() { n.program.Loses(method) },
					"before its work": func() {
						n.program.Does(func(_ context.Context, called string) error {
							if called != method {
								return nil
							}
							n.program.Does(nil)
							return status.Error(codes.Unavailable, "the program has crashed")
						})
					},
				} {
					crash()
					n.Version, n.Leaves = 1, false
					n.mustSettle(t, method+" crashes "+when)
					n.mustBe(t, should.shown[1], method+" crashes "+when)
					n.Leaves = true
					n.mustSettle(t, method+" crashes "+when)
					n.mustBe(t, should.empty, method+" crashes "+when)
				}
			}
		})
	}
}
