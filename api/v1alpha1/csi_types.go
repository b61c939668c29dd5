package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CSIBackend makes volumes with the Controller service of any CSI driver. Stowage stands in for
// external-provisioner, external-attacher and external-resizer of that driver. The name of the
// StorageBackend is the driver's name.
//
// +kubebuilder:validation:XValidation:rule="self.driver == oldSelf.driver",message="driver is immutable, its volumes would be orphaned: create another StorageBackend"
// +kubebuilder:validation:XValidation:rule="!has(self.tlsSecret) || self.endpoint.startsWith('tcp://')",message="tlsSecret is for an endpoint that begins with tcp://: a unix socket needs none"
// +kubebuilder:validation:XValidation:rule="has(self.tlsSecret) || self.endpoint.startsWith('unix://')",message="an endpoint that begins with tcp:// needs tlsSecret: calls carry secrets"
type CSIBackend struct {
	// driver is the name of the CSI driver, as it answers GetPluginInfo. It is the
	// provisioner of StorageClasses. The StorageBackend must have the same name.
	// Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="driver must be a name that Kubernetes accepts for a CSIDriver: lower case letters, digits, '-' and '.'"
	// +kubebuilder:validation:XValidation:rule="!self.endsWith('.stowage.dev')",message="drivers of stowage.dev are Stowage's own: set nfs, local or gce in place of csi"
	// +required
	Driver string `json:"driver"`
	// endpoint of the driver's Controller service: unix:// and the path of a socket in
	// a folder that the manager's pod shares with the driver's container, or tcp://,
	// a host and a port. A change holds for calls that begin after it.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^unix:///[^?#]+$') || self.matches('^tcp://[^/?#@]+:[0-9]{1,5}$')",message="endpoint must be a socket such as unix:///csi/csi.sock, or an address such as tcp://driver.example.com:10000"
	// +required
	Endpoint string `json:"endpoint"`
	// tlsSecret is the Secret, in the manager's own namespace, for an endpoint that
	// begins with tcp://: "tls.crt" and "tls.key" are the manager's certificate, and
	// "ca.crt" is the authority of the driver's. A change of either holds for
	// connections that begin after it.
	// +optional
	TLSSecret *SecretReference `json:"tlsSecret,omitempty"`
	// parameters of each CreateVolume. A StorageClass adds its own, and can't replace
	// these. A change holds for volumes made after it.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.size() <= 128 && !key.startsWith('csi.storage.k8s.io/'))",message="the keys of parameters are at most 128 characters, and none begins with csi.storage.k8s.io/: use secrets and fsType"
	// +optional
	Parameters map[string]CSIParameter `json:"parameters,omitempty"`
	// fsType is the file system of volumes whose class names none. Default: none, the
	// driver chooses. A change holds for volumes made after it.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9._-]*$`
	// +optional
	FSType string `json:"fsType,omitempty"`
	// secrets for calls of the driver. Default: none.
	// +optional
	Secrets CSISecrets `json:"secrets,omitzero"`
	// timeout of each call of the driver, as a duration of 1s to 10m ("15s"). A call
	// that takes longer is repeated. Default 15s. A change holds for calls that begin
	// after it.
	// +kubebuilder:default="15s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(h|m|s))+$') && duration(self) >= duration('1s') && duration(self) <= duration('10m')",message="timeout must be a duration such as 15s or 2m, at least 1s and at most 10m"
	// +optional
	Timeout metav1.Duration `json:"timeout,omitzero"`
}

// CSIParameter is the value of a parameter of CreateVolume.
//
// +kubebuilder:validation:MaxLength=1024
type CSIParameter string

// CSISecrets name the Secrets that a driver's calls carry. All are in the manager's own
// namespace: templates with names of claims aren't supported. The pod's node reads those
// for nodes, so volumes name them. A change holds for volumes made after it.
type CSISecrets struct {
	// provision is for CreateVolume and DeleteVolume.
	// +optional
	Provision *SecretReference `json:"provision,omitempty"`
	// controllerPublish is for ControllerPublishVolume and ControllerUnpublishVolume.
	// +optional
	ControllerPublish *SecretReference `json:"controllerPublish,omitempty"`
	// controllerExpand is for ControllerExpandVolume.
	// +optional
	ControllerExpand *SecretReference `json:"controllerExpand,omitempty"`
	// controllerModify is for ControllerModifyVolume. Default: controllerExpand.
	// +optional
	ControllerModify *SecretReference `json:"controllerModify,omitempty"`
	// nodeStage is for NodeStageVolume.
	// +optional
	NodeStage *SecretReference `json:"nodeStage,omitempty"`
	// nodePublish is for NodePublishVolume.
	// +optional
	NodePublish *SecretReference `json:"nodePublish,omitempty"`
	// nodeExpand is for NodeExpandVolume.
	// +optional
	NodeExpand *SecretReference `json:"nodeExpand,omitempty"`
}
