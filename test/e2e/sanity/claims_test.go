package sanity_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// register has a driver registered as a kubelet does, and returns the endpoint that it
// names.
func register(ctx context.Context, kubeletDir, driver string) (endpoint string, err error) {
	conn, err := dial("unix:" + filepath.Join(kubeletDir, "plugins_registry", driver+"-reg.sock"))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	kubelet := registerapi.NewRegistrationClient(conn)
	info, err := kubelet.GetInfo(ctx, &registerapi.InfoRequest{})
	if err != nil {
		return "", fmt.Errorf("asking %s how it wants to be registered: %w", driver, err)
	}
	if info.GetName() != driver || info.GetType() != registerapi.CSIPlugin {
		return "", fmt.Errorf("%s wants to be registered as %s %q", driver, info.GetType(), info.GetName())
	}
	_, err = kubelet.NotifyRegistrationStatus(ctx, &registerapi.RegistrationStatus{PluginRegistered: true})
	return "unix:" + info.GetEndpoint(), err
}

func dial(endpoint string) (*grpc.ClientConn, error) {
	return grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
}

// claims are the capabilities that a driver's node, and the test's controller, say they
// have: "node EXPAND_VOLUME" and the like, in order.
func claims(ctx context.Context, node, controller string) (claimed []string, err error) {
	onNode, err := dial(node)
	if err != nil {
		return nil, err
	}
	defer onNode.Close()
	atController, err := dial(controller)
	if err != nil {
		return nil, err
	}
	defer atController.Close()
	plugin, err := csi.NewIdentityClient(onNode).GetPluginCapabilities(ctx, &csi.GetPluginCapabilitiesRequest{})
	if err != nil {
		return nil, err
	}
	for _, one := range plugin.GetCapabilities() {
		claimed = append(claimed, "plug-in "+one.GetService().GetType().String())
	}
	ofNode, err := csi.NewNodeClient(onNode).NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
	if err != nil {
		return nil, err
	}
	for _, one := range ofNode.GetCapabilities() {
		claimed = append(claimed, "node "+one.GetRpc().GetType().String())
	}
	ofController, err := csi.NewControllerClient(atController).ControllerGetCapabilities(ctx, &csi.ControllerGetCapabilitiesRequest{})
	if err != nil {
		return nil, err
	}
	for _, one := range ofController.GetCapabilities() {
		claimed = append(claimed, "controller "+one.GetRpc().GetType().String())
	}
	slices.Sort(claimed)
	return claimed, nil
}

// needs are what csi-sanity says of a spec that it skips, and the capability without
// which it is right to. What isn't listed is never skipped.
var needs = map[string]string{
	"GetCapacity not supported":                                 "controller GET_CAPACITY",
	"ListVolumes not supported":                                 "controller LIST_VOLUMES",
	"Snapshot not supported":                                    "controller CREATE_DELETE_SNAPSHOT",
	"CreateSnapshot not supported":                              "controller CREATE_DELETE_SNAPSHOT",
	"DeleteSnapshot not supported":                              "controller CREATE_DELETE_SNAPSHOT",
	"ListSnapshots not supported":                               "controller LIST_SNAPSHOTS",
	"GetSnapshot not supported":                                 "controller GET_SNAPSHOT",
	"SNAPSHOT_ACCESSIBILITY_CONSTRAINTS not supported":          "plug-in SNAPSHOT_ACCESSIBILITY_CONSTRAINTS",
	"Volume Cloning not supported":                              "controller CLONE_VOLUME",
	"Modify volume not supported":                               "controller MODIFY_VOLUME",
	"Modify Volume not supported":                               "controller MODIFY_VOLUME",
	"ControllerModifyVolume not supported":                      "controller MODIFY_VOLUME",
	"ControllerPublishVolume not supported":                     "controller PUBLISH_UNPUBLISH_VOLUME",
	"ControllerUnpublishVolume not supported":                   "controller PUBLISH_UNPUBLISH_VOLUME",
	"Controller Publish, UnpublishVolume not supported":         "controller PUBLISH_UNPUBLISH_VOLUME",
	"ControllerPublishVolume.readonly field not supported":      "controller PUBLISH_READONLY",
	"ControllerExpandVolume not supported":                      "controller EXPAND_VOLUME",
	"ControllerGetVolumeHealth not supported":                   "controller GET_VOLUME_HEALTH",
	"ControllerListVolumeHealth not supported":                  "controller LIST_VOLUME_HEALTH",
	"Service does not have single node multi writer capability": "node SINGLE_NODE_MULTI_WRITER",
	"NodeStageVolume not supported":                             "node STAGE_UNSTAGE_VOLUME",
	"NodeUnstageVolume not supported":                           "node STAGE_UNSTAGE_VOLUME",
	"NodeGetVolume not supported":                               "node GET_VOLUME_STATS",
	"NodeExpandVolume not supported":                            "node EXPAND_VOLUME",
	"NodeGetVolumeHealth not supported":                         "node GET_VOLUME_HEALTH",
	"NodeGetStorageHealth not supported":                        "node GET_STORAGE_HEALTH",
	"GroupControllerService not supported":                      "plug-in GROUP_CONTROLLER_SERVICE",
}
