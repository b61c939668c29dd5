// Package sockettest has a CSI driver of another project, for tests: a program behind a socket that
// binds folders, and fails, hangs and lies as a test says.
package sockettest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/stowage-dev/stowage/internal/mount"
)

// Name is the driver's name.
const Name = "disk.example.com"

// Abilities of the driver.
const (
	Stage        = csispec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME
	Expand       = csispec.NodeServiceCapability_RPC_EXPAND_VOLUME
	Stats        = csispec.NodeServiceCapability_RPC_GET_VOLUME_STATS
	Group        = csispec.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP
	SingleWriter = csispec.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER
)

// Driver is the Node service. Its volumes are folders of Data, which it binds.
type Driver struct {
	csispec.UnimplementedNodeServer
	// Data has a folder for each volume.
	Data string
	// Info is the answer of NodeGetInfo, and Usage that of NodeGetVolumeStats.
	Info  *csispec.NodeGetInfoResponse
	Usage []*csispec.VolumeUsage

	mu       sync.Mutex
	can      []csispec.NodeServiceCapability_RPC_Type
	do       func(ctx context.Context, method string) error
	lies     bool
	loses    string
	requests []proto.Message
	calls    []string
}

// New returns a driver with abilities.
func New(t testing.TB, can ...csispec.NodeServiceCapability_RPC_Type) *Driver {
	t.Helper()
	return &Driver{Data: t.TempDir(), Info: &csispec.NodeGetInfoResponse{NodeId: "node-id"}, can: can}
}

// Folder is a short folder for sockets, whose paths can't be long.
func Folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "csi") //nolint:usetesting // paths of sockets have 107 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Serve serves the driver at a socket until the test ends, or stop is called.
func (d *Driver) Serve(t testing.TB, path string, options ...grpc.ServerOption) (stop func()) {
	t.Helper()
	server := grpc.NewServer(options...)
	csispec.RegisterNodeServer(server, d)
	return serve(t, server, path)
}

// Does sets what happens at each call before its work; nil: nothing.
func (d *Driver) Does(do func(ctx context.Context, method string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.do = do
}

// Lies has all calls succeed, and do nothing.
func (d *Driver) Lies(lies bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lies = lies
}

// Loses has the answer of the next call of a method be lost after its work, as if the program had
// crashed.
func (d *Driver) Loses(method string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loses = method
}

// end returns how a call ends.
func (d *Driver) end(method string, err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.loses != method {
		return err
	}
	d.loses = ""
	return status.Error(codes.Unavailable, "the program has crashed")
}

// Can sets the abilities.
func (d *Driver) Can(can ...csispec.NodeServiceCapability_RPC_Type) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.can = can
}

// Calls returns the calls so far, without those that ask for abilities, and forgets them.
func (d *Driver) Calls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	calls := d.calls
	d.calls = nil
	return calls
}

// Last returns the last request of its type; nil if there was none.
func Last[T proto.Message](d *Driver) T {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, request := range slices.Backward(d.requests) {
		if last, is := request.(T); is {
			return last
		}
	}
	return *new(T)
}

// Measured returns the paths at which volumes were measured.
func (d *Driver) Measured() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var paths []string
	for _, request := range d.requests {
		if measured, is := request.(*csispec.NodeGetVolumeStatsRequest); is {
			paths = append(paths, measured.GetVolumePath())
		}
	}
	return paths
}

// begin records a call, and reports whether its work is to be done.
func (d *Driver) begin(ctx context.Context, method string, request proto.Message) (bool, error) {
	d.mu.Lock()
	d.calls, d.requests = append(d.calls, method), append(d.requests, request)
	do, lies := d.do, d.lies
	d.mu.Unlock()
	if do != nil {
		if err := do(ctx, method); err != nil {
			return false, err
		}
	}
	return !lies, nil
}

// NodeGetInfo implements the Node service.
func (d *Driver) NodeGetInfo(ctx context.Context, request *csispec.NodeGetInfoRequest) (*csispec.NodeGetInfoResponse, error) {
	_, err := d.begin(ctx, "info", request)
	return d.Info, err
}

// NodeGetCapabilities implements the Node service.
func (d *Driver) NodeGetCapabilities(context.Context, *csispec.NodeGetCapabilitiesRequest) (*csispec.NodeGetCapabilitiesResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	answer := &csispec.NodeGetCapabilitiesResponse{}
	for _, can := range d.can {
		answer.Capabilities = append(answer.Capabilities, &csispec.NodeServiceCapability{
			Type: &csispec.NodeServiceCapability_Rpc{Rpc: &csispec.NodeServiceCapability_RPC{Type: can}},
		})
	}
	return answer, nil
}

// NodeStageVolume implements the Node service.
func (d *Driver) NodeStageVolume(ctx context.Context, request *csispec.NodeStageVolumeRequest) (*csispec.NodeStageVolumeResponse, error) {
	work, err := d.begin(ctx, "stage", request)
	if work && request.GetVolumeCapability().GetBlock() == nil {
		err = d.bind(request.GetVolumeId(), request.GetStagingTargetPath(), mount.ReadWrite)
	}
	return &csispec.NodeStageVolumeResponse{}, d.end("stage", err)
}

// NodeUnstageVolume implements the Node service.
func (d *Driver) NodeUnstageVolume(ctx context.Context, request *csispec.NodeUnstageVolumeRequest) (*csispec.NodeUnstageVolumeResponse, error) {
	work, err := d.begin(ctx, "unstage", request)
	if work {
		err = mount.UnmountBelow(mount.Kernel{}, request.GetStagingTargetPath())
	}
	return &csispec.NodeUnstageVolumeResponse{}, d.end("unstage", err)
}

// NodePublishVolume implements the Node service.
func (d *Driver) NodePublishVolume(ctx context.Context, request *csispec.NodePublishVolumeRequest) (*csispec.NodePublishVolumeResponse, error) {
	work, err := d.begin(ctx, "publish", request)
	access := mount.ReadWrite
	if request.GetReadonly() {
		access = mount.ReadOnly
	}
	switch {
	case !work:
	case request.GetVolumeCapability().GetBlock() != nil:
		if err = unix.Mknod(request.GetTargetPath(), unix.S_IFBLK|0o600, int(unix.Mkdev(7, 255))); os.IsExist(err) {
			err = nil
		}
	default:
		err = d.bind(request.GetVolumeId(), request.GetTargetPath(), access)
	}
	return &csispec.NodePublishVolumeResponse{}, d.end("publish", err)
}

// NodeUnpublishVolume implements the Node service.
func (d *Driver) NodeUnpublishVolume(ctx context.Context, request *csispec.NodeUnpublishVolumeRequest) (*csispec.NodeUnpublishVolumeResponse, error) {
	work, err := d.begin(ctx, "unpublish", request)
	if work {
		err = mount.UnmountBelow(mount.Kernel{}, request.GetTargetPath())
	}
	if work && err == nil {
		if err = os.Remove(request.GetTargetPath()); os.IsNotExist(err) {
			err = nil
		}
	}
	return &csispec.NodeUnpublishVolumeResponse{}, d.end("unpublish", err)
}

// NodeExpandVolume implements the Node service.
func (d *Driver) NodeExpandVolume(ctx context.Context, request *csispec.NodeExpandVolumeRequest) (*csispec.NodeExpandVolumeResponse, error) {
	_, err := d.begin(ctx, "expand", request)
	return &csispec.NodeExpandVolumeResponse{CapacityBytes: request.GetCapacityRange().GetRequiredBytes()}, err
}

// NodeGetVolumeStats implements the Node service.
func (d *Driver) NodeGetVolumeStats(ctx context.Context, request *csispec.NodeGetVolumeStatsRequest) (*csispec.NodeGetVolumeStatsResponse, error) {
	_, err := d.begin(ctx, "stats", request)
	return &csispec.NodeGetVolumeStatsResponse{Usage: d.Usage}, err
}

// bind binds the folder of a volume, unless something is mounted there already.
func (d *Driver) bind(handle, at string, access mount.Access) error {
	table, err := mount.Kernel{}.Table()
	if err != nil || table.IsMountPoint(at) {
		return err
	}
	folder := filepath.Join(d.Data, handle)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	opened, err := os.Open(folder)
	if err != nil {
		return fmt.Errorf("opening volume %s: %w", handle, err)
	}
	defer opened.Close()
	return mount.Kernel{}.Bind(opened, at, access)
}
