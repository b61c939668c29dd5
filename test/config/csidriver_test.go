package config_test

import (
	"context"
	"net"
	"os"
	"path/filepath"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// diskDriver is a CSI driver that makes volumes of any name, and attaches nothing. No sample has its name.
const diskDriver = "scope.csi.example.com"

type diskController struct {
	csispec.UnimplementedIdentityServer
	csispec.UnimplementedControllerServer
}

func (diskController) GetPluginInfo(context.Context, *csispec.GetPluginInfoRequest) (*csispec.GetPluginInfoResponse, error) {
	return &csispec.GetPluginInfoResponse{Name: diskDriver}, nil
}

func (diskController) Probe(context.Context, *csispec.ProbeRequest) (*csispec.ProbeResponse, error) {
	return &csispec.ProbeResponse{}, nil
}

func (diskController) GetPluginCapabilities(context.Context, *csispec.GetPluginCapabilitiesRequest) (*csispec.GetPluginCapabilitiesResponse, error) {
	answer := &csispec.GetPluginCapabilitiesResponse{}
	for _, service := range []csispec.PluginCapability_Service_Type{
		csispec.PluginCapability_Service_CONTROLLER_SERVICE, csispec.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
	} {
		answer.Capabilities = append(answer.Capabilities, &csispec.PluginCapability{
			Type: &csispec.PluginCapability_Service_{Service: &csispec.PluginCapability_Service{Type: service}},
		})
	}
	return answer, nil
}

func (diskController) ControllerGetCapabilities(
	context.Context, *csispec.ControllerGetCapabilitiesRequest,
) (*csispec.ControllerGetCapabilitiesResponse, error) {
	return &csispec.ControllerGetCapabilitiesResponse{Capabilities: []*csispec.ControllerServiceCapability{{
		Type: &csispec.ControllerServiceCapability_Rpc{Rpc: &csispec.ControllerServiceCapability_RPC{
			Type: csispec.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		}},
	}}}, nil
}

func (diskController) CreateVolume(_ context.Context, request *csispec.CreateVolumeRequest) (*csispec.CreateVolumeResponse, error) {
	return &csispec.CreateVolumeResponse{Volume: &csispec.Volume{
		VolumeId: "disks/" + request.GetName(), CapacityBytes: request.GetCapacityRange().GetRequiredBytes(),
	}}, nil
}

// servedDisks is the socket of the driver, beside the manager.
func servedDisks(ctx SpecContext) string {
	GinkgoHelper()
	folder, err := os.MkdirTemp("", "csi")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, folder)
	path := filepath.Join(folder, "csi.sock")
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	Expect(err).NotTo(HaveOccurred())
	server := grpc.NewServer()
	csispec.RegisterIdentityServer(server, diskController{})
	csispec.RegisterControllerServer(server, diskController{})
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Stop)
	return path
}

// withDriver makes a backend of the driver with a class, and a claim of it for which
// kube-controller-manager has requested a volume.
func withDriver(ctx SpecContext) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	backend := &stowagev1alpha1.StorageBackend{ObjectMeta: metav1.ObjectMeta{Name: diskDriver}}
	backend.Spec.CSI = &stowagev1alpha1.CSIBackend{Driver: diskDriver, Endpoint: "unix://" + servedDisks(ctx)}
	backend.Spec.StorageClass = &stowagev1alpha1.StorageClassTemplate{VolumeBindingMode: storagev1.VolumeBindingImmediate}
	name := diskDriver
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "of-driver", Namespace: "default", Annotations: map[string]string{volume.AnnStorageProvisioner: diskDriver}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &name, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	for _, object := range []client.Object{backend, claim} {
		Expect(admin.Create(ctx, object)).To(Succeed())
	}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: diskDriver}}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(claim.UID)}}
	DeferCleanup(func(ctx SpecContext) {
		for _, object := range []client.Object{claim, pv, class, backend} {
			Expect(client.IgnoreNotFound(admin.Delete(ctx, object))).To(Succeed())
			none := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))
			Expect(client.IgnoreNotFound(admin.Patch(ctx, object, none))).To(Succeed())
		}
	})
	return claim
}

// expectMadeByDriver expects the volume object that external-provisioner would have made.
func expectMadeByDriver(ctx SpecContext, claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	pv := &corev1.PersistentVolume{}
	Eventually(func() error {
		return admin.Get(ctx, client.ObjectKey{Name: "pvc-" + string(claim.UID)}, pv)
	}).WithTimeout(settled).Should(Succeed(), "the driver's volume")
	Expect(pv.Spec.CSI).To(HaveField("VolumeHandle", "disks/"+pv.Name))
	Expect(pv.Annotations).To(HaveKeyWithValue(volume.AnnDynamicallyProvisioned, diskDriver))
	Expect(pv.Spec.CSI.VolumeAttributes).To(HaveKey("storage.kubernetes.io/csiProvisionerIdentity"))
}
