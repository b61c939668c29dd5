package controllers

import (
	"context"
	"maps"
	"sync"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/provisioned"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A CSI driver behind a socket that", func() {
	// A fault is of the first call of each method, before its effect or after it.
	for name, fault := range map[string]func(*hostile, context.Context) error{
		"is slow":                          func(_ *hostile, ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"fails for no reason":              answering(codes.Unknown),
		"fails inside":                     answering(codes.Internal),
		"can't be reached":                 answering(codes.Unavailable),
		"is at it still":                   answering(codes.Aborted),
		"has no room, it says":             answering(codes.ResourceExhausted),
		"refuses the credentials":          answering(codes.PermissionDenied),
		"says that it isn't asked rightly": answering(codes.FailedPrecondition),
		"says that it knows no such call":  answering(codes.Unimplemented),
		"says that it is there already":    answering(codes.AlreadyExists),
		"answers with an unknown code":     answering(codes.Code(99)),
		"is restarted":                     (*hostile).restart,
		"forgets to name the volume": func(h *hostile, _ context.Context) error {
			h.lies(func(v *csispec.Volume) { v.VolumeId = "" })
			return nil
		},
	} {
		for _, after := range []bool{false, true} {
			when := map[bool]string{false: ", before the effect", true: ", after the effect"}[after]
			It(name+when+", makes one volume, and leaves none", func() {
				driver := newHostile()
				w, claim := worldOf(driver)
				driver.fails("CreateVolume", after, fault)
				w.create(claim)

				w.goOn(func() bool { return w.read(claim).Status.Phase == corev1.ClaimBound })

				expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
				Expect(driver.holds()).To(HaveLen(1))

				driver.fails("DeleteVolume", after, fault)
				w.delete(claim)

				w.goOn(func() bool { return w.gone(Volume(provisioned.VolumeID(claim))) })
				Expect(driver.holds()).To(BeEmpty())
				Expect(driver.left()).To(BeEmpty(), "all went wrong that was to")
			})

			It(name+when+", leaves nothing of a claim that is deleted at once", func() {
				driver := newHostile()
				w, claim := worldOf(driver)
				driver.fails("CreateVolume", after, fault)
				w.create(claim)
				_ = w.round()
				w.restart()
				w.served.Registry = callingDrivers()
				w.delete(claim)

				w.goOn(func() bool { return w.gone(claim) })
				Expect(driver.holds()).To(BeEmpty())
			})
		}
	}
})

// worldOf is a cluster with the driver, and a claim that isn't created yet.
func worldOf(driver *hostile) (*world, *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	w, object := withSocket(driver.serve())
	w.create(object)
	w.settle()
	return w, Claim(InClass("kept"))
}

// goOn repeats what fails, until something is so. A connection that broke is made again after a second.
func (w *world) goOn(until func() bool) {
	GinkgoHelper()
	Eventually(func() bool {
		_ = w.round()
		return until()
	}).WithTimeout(20 * time.Second).WithPolling(20 * time.Millisecond).Should(BeTrue())
}

// hostile is a driver whose first call of a method goes wrong.
type hostile struct {
	refusing
	mu      sync.Mutex
	volumes map[string]*csispec.Volume
	wrong   map[string]wrong
	lie     func(*csispec.Volume)
	path    string
	server  *grpc.Server
}

// wrong is what goes wrong, and whether the call has its effect first.
type wrong struct {
	after bool
	fault func(*hostile, context.Context) error
}

func newHostile() *hostile {
	return &hostile{
		refusing: refusing{name: csiDriver, can: csispec.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME},
		volumes:  map[string]*csispec.Volume{}, wrong: map[string]wrong{},
	}
}

func answering(code codes.Code) func(*hostile, context.Context) error {
	return func(*hostile, context.Context) error { return status.Error(code, "so it says") }
}

// serve serves it until the spec ends, and returns the path of its socket.
func (h *hostile) serve() string {
	GinkgoHelper()
	h.path = (*refusing)(nil).serve()
	h.server = serveDriver(context.Background(), h.path, h)
	return h.path
}

// restart ends its program in the middle of a call, as a crash does, and starts another one.
func (h *hostile) restart(ctx context.Context) error {
	go func() {
		defer GinkgoRecover()
		h.mu.Lock()
		defer h.mu.Unlock()
		h.server.Stop()
		h.server = serveDriver(context.WithoutCancel(ctx), h.path, h)
	}()
	<-ctx.Done()
	return ctx.Err()
}

func (h *hostile) fails(method string, after bool, fault func(*hostile, context.Context) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrong[method] = wrong{after, fault}
}

// lies changes the next answer of CreateVolume.
func (h *hostile) lies(lie func(*csispec.Volume)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lie = lie
}

func (h *hostile) holds() map[string]*csispec.Volume {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.volumes)
}

// left is what hasn't gone wrong yet.
func (h *hostile) left() map[string]wrong {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.wrong)
}

// do does the work of a call, or what goes wrong with it.
func (h *hostile) do(ctx context.Context, method string, work func()) error {
	h.mu.Lock()
	next, goes := h.wrong[method]
	delete(h.wrong, method)
	h.mu.Unlock()
	if goes && !next.after {
		if err := next.fault(h, ctx); err != nil {
			return err
		}
	}
	h.mu.Lock()
	work()
	h.mu.Unlock()
	if goes && next.after {
		return next.fault(h, ctx)
	}
	return nil
}

func (h *hostile) CreateVolume(ctx context.Context, request *csispec.CreateVolumeRequest) (*csispec.CreateVolumeResponse, error) {
	answer := &csispec.Volume{}
	err := h.do(ctx, "CreateVolume", func() {
		id := "id of " + request.GetName()
		if h.volumes[id] == nil {
			h.volumes[id] = &csispec.Volume{VolumeId: id, CapacityBytes: request.GetCapacityRange().GetRequiredBytes()}
		}
		answer.VolumeId, answer.CapacityBytes = id, h.volumes[id].GetCapacityBytes()
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lie != nil {
		h.lie(answer)
		h.lie = nil
	}
	return &csispec.CreateVolumeResponse{Volume: answer}, err
}

func (h *hostile) DeleteVolume(ctx context.Context, request *csispec.DeleteVolumeRequest) (*csispec.DeleteVolumeResponse, error) {
	return &csispec.DeleteVolumeResponse{}, h.do(ctx, "DeleteVolume", func() { delete(h.volumes, request.GetVolumeId()) })
}
