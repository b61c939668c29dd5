package stock_test

import (
	"context"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"
	"sync"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// changing are the methods that change a volume, or what is attached.
var changing = []string{
	"CreateVolume", "DeleteVolume", "ControllerPublishVolume", "ControllerUnpublishVolume", "ControllerExpandVolume",
}

// driverCall is a call that a driver has answered.
type driverCall struct {
	// by is the socket that it came by.
	by, method string
	request    proto.Message
	err        error
}

// volume is the id or, of CreateVolume, the name.
func (c driverCall) volume() string {
	switch request := c.request.(type) {
	case *csispec.CreateVolumeRequest:
		return request.GetName()
	case interface{ GetVolumeId() string }:
		return request.GetVolumeId()
	default:
		return ""
	}
}

func (c driverCall) String() string { return strings.Join([]string{c.by, c.method, c.volume()}, " ") }

// recorder passes calls on to a driver, unchanged, and remembers those that change something.
type recorder struct {
	driver *grpc.ClientConn
	// groups serves the driver's group snapshots; nil where it has none.
	groups *groupService

	mu    sync.Mutex
	calls []driverCall
	// held are the methods whose answers don't arrive, until the caller gives up or the channel is closed.
	held map[string]chan struct{}
}

// record starts a recorder of the driver at a socket.
func record(socket string) *recorder {
	GinkgoHelper()
	driver, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(driver.Close)
	return &recorder{driver: driver, held: map[string]chan struct{}{}}
}

// serve takes calls at a socket: its name is that of the program that makes them.
func (r *recorder) serve(socket string) {
	GinkgoHelper()
	listener, err := net.Listen("unix", socket)
	Expect(err).NotTo(HaveOccurred())
	by := strings.TrimSuffix(path.Base(socket), ".sock")
	server := grpc.NewServer(grpc.ForceServerCodec(unread{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		return r.pass(by, stream)
	}))
	DeferCleanup(server.Stop)
	go func() { _ = server.Serve(listener) }() // it ends with the spec
}

func (r *recorder) pass(by string, stream grpc.ServerStream) error {
	name, _ := grpc.MethodFromServerStream(stream)
	var request, answer []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	var err error
	if r.groups != nil && strings.HasPrefix(name, groupServiceName) {
		answer, err = r.groups.answer(stream.Context(), name, request)
	} else {
		err = r.driver.Invoke(stream.Context(), name, &request, &answer, grpc.ForceCodec(unread{}))
	}
	method := path.Base(name)
	if held := r.remember(driverCall{by: by, method: method, request: requestOf(method, request), err: err}); held != nil {
		select {
		case <-held:
		case <-stream.Context().Done():
		}
	}
	if err != nil {
		return err
	}
	return stream.SendMsg(&answer)
}

// remember returns what the answer waits for.
func (r *recorder) remember(call driverCall) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(changing, call.method) {
		r.calls = append(r.calls, call)
	}
	return r.held[call.method]
}

func requestOf(method string, content []byte) proto.Message {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("csi.v1." + method + "Request"))
	if err != nil {
		return nil
	}
	request := kind.New().Interface()
	_ = proto.Unmarshal(content, request) // the driver read it, too
	return request
}

// hold has answers of methods not arrive from now on; release ends that.
func (r *recorder) hold(methods ...string) (release func()) {
	held := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, method := range methods {
		r.held[method] = held
	}
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		clear(r.held)
		close(held)
	})
}

// since returns the calls after the first ones, as texts.
func (r *recorder) since(number int) (calls []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, call := range r.calls[number:] {
		calls = append(calls, call.String())
	}
	return calls
}

// different are the calls after the first ones, without repeats: external-attacher calls again when its cache is late.
func (r *recorder) different(number int) []string {
	calls := r.since(number)
	slices.Sort(calls)
	return slices.Compact(calls)
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.calls)
}

// request returns the request of the last call of a kind.
func (r *recorder) request(by, method, volume string) proto.Message {
	GinkgoHelper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, call := range slices.Backward(r.calls) {
		if call.by == by && call.method == method && call.volume() == volume {
			return call.request
		}
	}
	Fail(fmt.Sprintf("%s has not called %s for %s", by, method, volume))
	return nil
}

// volumes returns the driver's volumes, by name, with their ids. It has some that it didn't make.
func (r *recorder) volumes(ctx context.Context) map[string]string {
	GinkgoHelper()
	answer, err := csispec.NewControllerClient(r.driver).ListVolumes(ctx, &csispec.ListVolumesRequest{})
	Expect(err).NotTo(HaveOccurred())
	found := map[string]string{}
	for _, entry := range answer.GetEntries() {
		name := entry.GetVolume().GetVolumeContext()["name"]
		Expect(found).NotTo(HaveKey(name))
		if !strings.HasPrefix(name, "Mock Volume") {
			found[name] = entry.GetVolume().GetVolumeId()
		}
	}
	return found
}

// unread is a codec that leaves messages as they are.
type unread struct{}

func (unread) Marshal(message any) ([]byte, error) { return *message.(*[]byte), nil }

func (unread) Unmarshal(content []byte, message any) error {
	*message.(*[]byte) = slices.Clone(content)
	return nil
}

func (unread) Name() string { return "proto" }
