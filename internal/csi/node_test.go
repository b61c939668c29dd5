package csi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

func stageRequest(change func(*csispec.NodeStageVolumeRequest)) *csispec.NodeStageVolumeRequest {
	request := &csispec.NodeStageVolumeRequest{VolumeId: "v1", StagingTargetPath: "/s/v1", VolumeCapability: mounted(multiWriter)}
	if change != nil {
		change(request)
	}
	return request
}

func publishRequest(change func(*csispec.NodePublishVolumeRequest)) *csispec.NodePublishVolumeRequest {
	request := &csispec.NodePublishVolumeRequest{
		VolumeId: "v1", StagingTargetPath: "/s/v1", TargetPath: "/t/v1", VolumeCapability: mounted(multiWriter),
	}
	if change != nil {
		change(request)
	}
	return request
}

func TestAWrongStageRequestIsRefusedByItsField(t *testing.T) {
	tests := map[string]struct {
		change func(*csispec.NodeStageVolumeRequest)
		says   string
	}{
		"no id":               {func(r *csispec.NodeStageVolumeRequest) { r.VolumeId = "" }, "volume_id"},
		"no staging path":     {func(r *csispec.NodeStageVolumeRequest) { r.StagingTargetPath = "" }, "staging_target_path is missing"},
		"a relative path":     {func(r *csispec.NodeStageVolumeRequest) { r.StagingTargetPath = "s" }, "staging_target_path must be an absolute"},
		"the whole machine":   {func(r *csispec.NodeStageVolumeRequest) { r.StagingTargetPath = "/s/.." }, "staging_target_path must not be /"},
		"another spelling":    {func(r *csispec.NodeStageVolumeRequest) { r.StagingTargetPath = "/s//v1/" }, "staging_target_path must be"},
		"not the kubelet's":   {func(r *csispec.NodeStageVolumeRequest) { r.StagingTargetPath = "/sv1" }, "--root-dir"},
		"the kubelet's whole": {func(r *csispec.NodeStageVolumeRequest) { r.StagingTargetPath = "/s" }, "--root-dir"},
		"a pod's own volume":  {func(r *csispec.NodeStageVolumeRequest) { r.VolumeId = inlineID }, "volume_id"},
		"no capability":       {func(r *csispec.NodeStageVolumeRequest) { r.VolumeCapability = nil }, "volume_capability is missing"},
		"no access type":      {func(r *csispec.NodeStageVolumeRequest) { r.VolumeCapability.AccessType = nil }, "access_type"},
		"no access mode":      {func(r *csispec.NodeStageVolumeRequest) { r.VolumeCapability.AccessMode = nil }, "access_mode"},
		"another access mode": {func(r *csispec.NodeStageVolumeRequest) { r.VolumeCapability.AccessMode.Mode = 77 }, "access_mode"},
		"a group":             {func(r *csispec.NodeStageVolumeRequest) { r.VolumeCapability.GetMount().VolumeMountGroup = "5" }, "volume_mount_group"},
		"half an attachment":  {func(r *csispec.NodeStageVolumeRequest) { r.PublishContext = map[string]string{"device": "d"} }, "publish_context"},
	}
	driver := &ableDriver{}
	w := startWorld(t, driver, worldOptions{})
	w.Server.node.within = "/s"
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := w.node.NodeStageVolume(t.Context(), stageRequest(test.change))
			wantCode(t, err, codes.InvalidArgument, test.says)
		})
	}
	driver.wantCalls(t)
}

func TestAWrongPublishRequestIsRefusedByItsField(t *testing.T) {
	inline := func(r *csispec.NodePublishVolumeRequest) {
		r.VolumeId = inlineID
		r.VolumeContext = map[string]string{ephemeralKey: "true", podNameKey: "p", podSpaceKey: "shop", podUIDKey: "u1"}
	}
	tests := map[string]struct {
		change func(*csispec.NodePublishVolumeRequest)
		code   codes.Code
		says   string
	}{
		"no id":           {func(r *csispec.NodePublishVolumeRequest) { r.VolumeId = "" }, codes.InvalidArgument, "volume_id"},
		"no target":       {func(r *csispec.NodePublishVolumeRequest) { r.TargetPath = "" }, codes.InvalidArgument, "target_path is missing"},
		"relative target": {func(r *csispec.NodePublishVolumeRequest) { r.TargetPath = "t" }, codes.InvalidArgument, "target_path"},
		"no capability":   {func(r *csispec.NodePublishVolumeRequest) { r.VolumeCapability = nil }, codes.InvalidArgument, "volume_capability"},
		"not staged":      {func(r *csispec.NodePublishVolumeRequest) { r.StagingTargetPath = "" }, codes.FailedPrecondition, "staging_target_path"},
		"a pod's own id":  {func(r *csispec.NodePublishVolumeRequest) { r.VolumeId = inlineID }, codes.InvalidArgument, "volume_id"},
		"a target's tail": {func(r *csispec.NodePublishVolumeRequest) { r.TargetPath = "/t/v1/" }, codes.InvalidArgument, "target_path"},
		"relative stage":  {func(r *csispec.NodePublishVolumeRequest) { r.StagingTargetPath = "s" }, codes.InvalidArgument, "staging_target_path"},
		"inline, of a claim's id": {func(r *csispec.NodePublishVolumeRequest) {
			inline(r)
			r.VolumeId = "v1"
		}, codes.InvalidArgument, "volume_id"},
		"inline, without a pod": {func(r *csispec.NodePublishVolumeRequest) {
			inline(r)
			delete(r.VolumeContext, podUIDKey)
		}, codes.InvalidArgument, podUIDKey},
		"inline, a device": {func(r *csispec.NodePublishVolumeRequest) {
			inline(r)
			r.VolumeCapability = asDevice(multiWriter)
		}, codes.InvalidArgument, "block"},
	}
	driver := &ableDriver{}
	w := startWorld(t, driver, worldOptions{})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := w.node.NodePublishVolume(t.Context(), publishRequest(test.change))
			wantCode(t, err, test.code, test.says)
		})
	}
	driver.wantCalls(t)
}

func TestWhatTakesAVolumeAwayNeedsToKnowItsIDAndPath(t *testing.T) {
	driver := &ableDriver{}
	w, ctx := startWorld(t, driver, worldOptions{}), t.Context()
	unstage := func(id, path string) error {
		_, err := w.node.NodeUnstageVolume(ctx, &csispec.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: path})
		return err
	}
	unpublish := func(id, path string) error {
		_, err := w.node.NodeUnpublishVolume(ctx, &csispec.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: path})
		return err
	}
	wantCode(t, unstage("", "/s"), codes.InvalidArgument, "volume_id")
	wantCode(t, unstage("v1", ""), codes.InvalidArgument, "staging_target_path")
	wantCode(t, unpublish("", "/t"), codes.InvalidArgument, "volume_id")
	wantCode(t, unpublish("v1", "t"), codes.InvalidArgument, "target_path")
	driver.wantCalls(t)

	for _, err := range []error{unstage("v1", "/s"), unpublish("v1", "/t"), unpublish(inlineID, "/t")} {
		wantCode(t, err, codes.OK, "")
	}
	driver.wantCalls(t, "unstage v1 /s", "check v1 /t", "unpublish v1 /t", "unpublish inline csi-inline /t")
}

func TestAPodsOwnVolumeIsRefusedWhereADriverHasNone(t *testing.T) {
	driver := &plainDriver{}
	w := startWorld(t, driver, worldOptions{})
	_, err := w.node.NodePublishVolume(t.Context(), publishRequest(func(r *csispec.NodePublishVolumeRequest) {
		r.VolumeContext = map[string]string{ephemeralKey: "true"}
	}))
	wantCode(t, err, codes.InvalidArgument, "use a claim")
	driver.wantCalls(t)
}

func TestWhatADriverClaimsItCan(t *testing.T) {
	const (
		stage  = csispec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME
		stats  = csispec.NodeServiceCapability_RPC_GET_VOLUME_STATS
		health = csispec.NodeServiceCapability_RPC_GET_VOLUME_HEALTH
		writer = csispec.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER
		expand = csispec.NodeServiceCapability_RPC_EXPAND_VOLUME
	)
	tests := map[string]struct {
		driver drivers.Driver
		want   []csispec.NodeServiceCapability_RPC_Type
	}{
		"one that grows":   {&ableDriver{}, []csispec.NodeServiceCapability_RPC_Type{stage, stats, health, writer, expand}},
		"one that doesn't": {&plainDriver{}, []csispec.NodeServiceCapability_RPC_Type{stage, stats, health, writer}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := startWorld(t, test.driver, worldOptions{})
			response, err := w.node.NodeGetCapabilities(t.Context(), &csispec.NodeGetCapabilitiesRequest{})
			if err != nil {
				t.Fatal(err)
			}
			var got []csispec.NodeServiceCapability_RPC_Type
			for _, capability := range response.GetCapabilities() {
				got = append(got, capability.GetRpc().GetType())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestWhatIsSaidOfTheNodeAndTheDriver(t *testing.T) {
	info := Info{NodeID: "n1", MaxVolumes: 16, Topology: map[string]string{"zone": "a"}}
	w, ctx := startWorld(t, &plainDriver{}, worldOptions{inform: func(context.Context) (Info, error) { return info, nil }}), t.Context()
	node, err := w.node.NodeGetInfo(ctx, &csispec.NodeGetInfoRequest{})
	if err != nil || node.GetNodeId() != "n1" || node.GetMaxVolumesPerNode() != 16 || node.GetAccessibleTopology().GetSegments()["zone"] != "a" {
		t.Errorf("of the node is said %v, %v", node, err)
	}
	plugin, err := w.identity.GetPluginInfo(ctx, &csispec.GetPluginInfoRequest{})
	if err != nil || plugin.GetName() != driverName || plugin.GetVendorVersion() != "v1" {
		t.Errorf("of the driver is said %v, %v", plugin, err)
	}
	can, err := w.identity.GetPluginCapabilities(ctx, &csispec.GetPluginCapabilitiesRequest{})
	if err != nil || len(can.GetCapabilities()) != 1 ||
		can.GetCapabilities()[0].GetService().GetType() != csispec.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS {
		t.Errorf("it can %v, %v", can, err)
	}
}

func TestADriverWithoutTopologySaysNothingOfPlaces(t *testing.T) {
	w := startWorld(t, &plainDriver{}, worldOptions{})
	can, err := w.identity.GetPluginCapabilities(t.Context(), &csispec.GetPluginCapabilitiesRequest{})
	if err != nil || len(can.GetCapabilities()) != 0 {
		t.Errorf("it can %v, %v", can, err)
	}
	node, err := w.node.NodeGetInfo(t.Context(), &csispec.NodeGetInfoRequest{})
	if err != nil || node.GetAccessibleTopology() != nil {
		t.Errorf("of the node is said %v, %v", node, err)
	}
}

func TestErrorsHaveTheirCodes(t *testing.T) {
	tests := map[string]struct {
		err               error
		staging, stopping codes.Code
	}{
		"invalid":         {volumes.ErrInvalid, codes.InvalidArgument, codes.InvalidArgument},
		"not found":       {volumes.ErrNotFound, codes.NotFound, codes.NotFound},
		"another there":   {volumes.ErrOtherVolume, codes.AlreadyExists, codes.AlreadyExists},
		"not staged":      {volumes.ErrNotStaged, codes.FailedPrecondition, codes.FailedPrecondition},
		"in use":          {volumes.ErrInUse, codes.FailedPrecondition, codes.FailedPrecondition},
		"not supported":   {volumes.ErrNotSupported, codes.Unimplemented, codes.Unimplemented},
		"disk gone":       {volumes.ErrGone, codes.Unavailable, codes.Unavailable},
		"server silent":   {remote.ErrSilent, codes.Unavailable, codes.Unavailable},
		"server's places": {remote.ErrBusy, codes.Unavailable, codes.Unavailable},
		"detached":        {remote.ErrDetached, codes.Unavailable, codes.Unavailable},
		"too late":        {context.DeadlineExceeded, codes.DeadlineExceeded, codes.DeadlineExceeded},
		"cancelled":       {context.Canceled, codes.Canceled, codes.Canceled},
		"two at once":     {errors.Join(volumes.ErrNotFound, remote.ErrSilent), codes.Unavailable, codes.Unavailable},
		"a code already":  {status.Error(codes.OutOfRange, "x"), codes.OutOfRange, codes.OutOfRange},
		// After Internal, a kubelet takes it that nothing was mounted.
		"anything": {errors.New("x"), codes.Unavailable, codes.Internal},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			wrapped := fmt.Errorf("mounting: %w", test.err)
			driver := &plainDriver{do: func(context.Context) error { return wrapped }}
			w, ctx := startWorld(t, driver, worldOptions{}), t.Context()
			_, err := w.node.NodeStageVolume(ctx, stageRequest(nil))
			wantCode(t, err, test.staging, "")
			_, err = w.node.NodePublishVolume(ctx, publishRequest(nil))
			wantCode(t, err, test.staging, "")
			_, err = w.node.NodeUnstageVolume(ctx, &csispec.NodeUnstageVolumeRequest{VolumeId: "v1", StagingTargetPath: "/s"})
			wantCode(t, err, test.stopping, "")
			_, err = w.node.NodeUnpublishVolume(ctx, &csispec.NodeUnpublishVolumeRequest{VolumeId: "v1", TargetPath: "/t"})
			wantCode(t, err, test.stopping, "")
		})
	}
}

func TestAVolumeGrowsWhereItIs(t *testing.T) {
	sized := func(required, limit int64) *csispec.CapacityRange {
		return &csispec.CapacityRange{RequiredBytes: required, LimitBytes: limit}
	}
	tests := map[string]struct {
		request *csispec.NodeExpandVolumeRequest
		code    codes.Code
		call    string
	}{
		"staged":        {&csispec.NodeExpandVolumeRequest{VolumeId: "v1", VolumePath: "/t", StagingTargetPath: "/s", CapacityRange: sized(100, 0)}, codes.OK, "grow v1 /s"},
		"published":     {&csispec.NodeExpandVolumeRequest{VolumeId: "v1", VolumePath: "/t"}, codes.OK, "grow v1 /t"},
		"not yet":       {&csispec.NodeExpandVolumeRequest{VolumeId: "v1", VolumePath: "/t", CapacityRange: sized(101, 0)}, codes.Unavailable, "grow v1 /t"},
		"no id":         {&csispec.NodeExpandVolumeRequest{VolumePath: "/t"}, codes.InvalidArgument, ""},
		"no path":       {&csispec.NodeExpandVolumeRequest{VolumeId: "v1", StagingTargetPath: "/s"}, codes.InvalidArgument, ""},
		"nowhere":       {&csispec.NodeExpandVolumeRequest{VolumeId: "v1", VolumePath: "some/path"}, codes.NotFound, ""},
		"a wrong range": {&csispec.NodeExpandVolumeRequest{VolumeId: "v1", VolumePath: "/t", CapacityRange: sized(5, 4)}, codes.InvalidArgument, ""},
		"less than 0":   {&csispec.NodeExpandVolumeRequest{VolumeId: "v1", VolumePath: "/t", CapacityRange: sized(-1, 0)}, codes.InvalidArgument, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			driver := &ableDriver{size: 100}
			w := startWorld(t, driver, worldOptions{})
			response, err := w.node.NodeExpandVolume(t.Context(), test.request)
			wantCode(t, err, test.code, "")
			if test.code == codes.OK && response.GetCapacityBytes() != 100 {
				t.Errorf("it has %d bytes", response.GetCapacityBytes())
			}
			if test.call == "" {
				driver.wantCalls(t)
				return
			}
			driver.wantCalls(t, test.call)
		})
	}
}

func TestADriverThatDoesNotGrowSaysSo(t *testing.T) {
	w := startWorld(t, &plainDriver{}, worldOptions{})
	_, err := w.node.NodeExpandVolume(t.Context(), &csispec.NodeExpandVolumeRequest{VolumeId: "v1", VolumePath: "/t"})
	wantCode(t, err, codes.Unimplemented, "without the node")
}

func TestHealthIsWhatTheDriverFinds(t *testing.T) {
	tests := map[string]struct {
		ails   error
		code   codes.Code
		status csispec.VolumeHealthErrorType
		reason string
	}{
		"well":       {nil, codes.OK, 0, ""},
		"silent":     {remote.ErrSilent, codes.OK, csispec.VolumeHealthErrorType_INACCESSIBLE, "ServerSilent"},
		"gone":       {volumes.ErrGone, codes.OK, csispec.VolumeHealthErrorType_INACCESSIBLE, "DiskGone"},
		"another":    {volumes.ErrOtherVolume, codes.OK, csispec.VolumeHealthErrorType_INACCESSIBLE, "OtherVolume"},
		"over limit": {volumes.ErrOverLimit, codes.OK, csispec.VolumeHealthErrorType_DEGRADED, "OverLimit"},
		"anything":   {errors.New("x"), codes.OK, csispec.VolumeHealthErrorType_INACCESSIBLE, "Abnormal"},
		"not there":  {volumes.ErrNotFound, codes.NotFound, 0, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			driver := &plainDriver{ails: test.ails}
			w := startWorld(t, driver, worldOptions{})
			response, err := w.node.NodeGetVolumeHealth(t.Context(), &csispec.NodeGetVolumeHealthRequest{VolumeId: "v1", StagingTargetPath: "/s", VolumePublishPath: "/t"})
			wantCode(t, err, test.code, "")
			driver.wantCalls(t, "check v1 /t")
			if err != nil {
				return
			}
			said := response.GetVolumeHealth()
			if said.GetVolumeId() != "v1" || (len(said.GetHealthStatuses()) == 0) != (test.reason == "") {
				t.Fatalf("got %v", said)
			}
			for _, entry := range said.GetHealthStatuses() {
				if entry.GetStatus() != test.status || entry.GetReason() != test.reason || entry.GetMessage() == "" {
					t.Errorf("got %v", entry)
				}
			}
		})
	}
}

func TestHealthNeedsNoPath(t *testing.T) {
	driver := &plainDriver{}
	w := startWorld(t, driver, worldOptions{})
	if _, err := w.node.NodeGetVolumeHealth(t.Context(), &csispec.NodeGetVolumeHealthRequest{VolumeId: "v1"}); err != nil {
		t.Error(err)
	}
	driver.wantCalls(t, "check v1 ")
	_, err := w.node.NodeGetVolumeHealth(t.Context(), &csispec.NodeGetVolumeHealthRequest{})
	wantCode(t, err, codes.InvalidArgument, "volume_id")
}

func TestStatsAreThoseOfTheFileSystem(t *testing.T) {
	w, dir := startWorld(t, &plainDriver{}, worldOptions{}), t.TempDir()
	response, err := w.node.NodeGetVolumeStats(t.Context(), &csispec.NodeGetVolumeStatsRequest{VolumeId: "v1", VolumePath: dir})
	if err != nil {
		t.Fatal(err)
	}
	units := map[csispec.VolumeUsage_Unit]*csispec.VolumeUsage{}
	for _, usage := range response.GetUsage() {
		units[usage.GetUnit()] = usage
	}
	bytes := units[csispec.VolumeUsage_BYTES]
	if bytes.GetTotal() <= 0 || bytes.GetUsed() <= 0 || bytes.GetAvailable() > bytes.GetTotal()-bytes.GetUsed() || units[csispec.VolumeUsage_INODES] == nil {
		t.Errorf("got %v", response)
	}
}

func TestStatsOfWhatIsNotThereAreNotFound(t *testing.T) {
	tests := map[string]struct {
		ails error
		id   string
		path string
		code codes.Code
	}{
		"no path":          {nil, "v1", "", codes.InvalidArgument},
		"no id":            {nil, "", "/t", codes.InvalidArgument},
		"a relative path":  {nil, "v1", "some/path", codes.NotFound},
		"nothing there":    {nil, "v1", filepath.Join(os.TempDir(), "no-such-volume"), codes.NotFound},
		"no volume there":  {volumes.ErrNotFound, "v1", os.TempDir(), codes.NotFound},
		"it isn't staged":  {volumes.ErrNotStaged, "v1", os.TempDir(), codes.NotFound},
		"it ails, no more": {volumes.ErrOverLimit, "v1", os.TempDir(), codes.OK},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := startWorld(t, &plainDriver{ails: test.ails}, worldOptions{})
			_, err := w.node.NodeGetVolumeStats(t.Context(), &csispec.NodeGetVolumeStatsRequest{VolumeId: test.id, VolumePath: test.path})
			wantCode(t, err, test.code, "")
		})
	}
}
