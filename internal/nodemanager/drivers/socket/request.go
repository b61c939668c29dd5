package socket

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/ownership"
)

// Keys of the API, which a kubelet adds to the attributes of volumes.
const (
	podNameKey      = "csi.storage.k8s.io/pod.name"
	podNamespaceKey = "csi.storage.k8s.io/pod.namespace"
	podUIDKey       = "csi.storage.k8s.io/pod.uid"
	accountKey      = "csi.storage.k8s.io/serviceAccount.name"
	tokensKey       = "csi.storage.k8s.io/serviceAccount.tokens"
	ephemeralKey    = "csi.storage.k8s.io/ephemeral"
)

// modes are the access modes of the CSI specification. Drivers that know single writers have others
// for volumes of one node.
var (
	modes = map[corev1.PersistentVolumeAccessMode]csispec.VolumeCapability_AccessMode_Mode{
		corev1.ReadWriteOnce:    csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
		corev1.ReadOnlyMany:     csispec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY,
		corev1.ReadWriteMany:    csispec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER,
		corev1.ReadWriteOncePod: csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
	}
	singleWriterModes = map[corev1.PersistentVolumeAccessMode]csispec.VolumeCapability_AccessMode_Mode{
		corev1.ReadWriteOnce:    csispec.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER,
		corev1.ReadWriteOncePod: csispec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
	}
)

// source is what is the same for volumes with an object and those of a pod's own.
type source struct {
	fsType     string
	attributes map[string]string
	mode       corev1.PersistentVolumeAccessMode
	options    []string
	ephemeral  bool
	publishing *corev1.SecretReference
}

func sourceOf(spec volumes.Spec) source {
	if own := spec.Volume.CSI; spec.PersistentVolume == nil {
		found := source{fsType: ptr.Deref(own.FSType, ""), attributes: own.VolumeAttributes, mode: corev1.ReadWriteOnce, ephemeral: true}
		if reference := own.NodePublishSecretRef; reference != nil {
			found.publishing = &corev1.SecretReference{Namespace: spec.Pod.Namespace, Name: reference.Name}
		}
		return found
	}
	object := spec.PersistentVolume.Spec
	found := source{
		fsType: object.CSI.FSType, attributes: object.CSI.VolumeAttributes, mode: corev1.ReadWriteOnce,
		options: object.MountOptions, publishing: object.CSI.NodePublishSecretRef,
	}
	// A kubelet names the first one, too.
	if len(object.AccessModes) > 0 {
		found.mode = object.AccessModes[0]
	}
	return found
}

// capability is how a volume is used.
func (d *Driver) capability(spec volumes.Spec, driver storagev1.CSIDriverSpec, can abilities) *csispec.VolumeCapability {
	of := sourceOf(spec)
	mode, known := singleWriterModes[of.mode]
	if !known || !can.singleWriters {
		mode = modes[of.mode]
	}
	capability := &csispec.VolumeCapability{AccessMode: &csispec.VolumeCapability_AccessMode{Mode: mode}}
	if spec.IsBlock() {
		capability.AccessType = &csispec.VolumeCapability_Block{Block: &csispec.VolumeCapability_BlockVolume{}}
		return capability
	}
	mounted := &csispec.VolumeCapability_MountVolume{FsType: of.fsType, MountFlags: slices.Clone(of.options)}
	if group, has := fsGroupOf(spec.Pod); has && can.group {
		mounted.VolumeMountGroup = strconv.FormatInt(group, 10)
	}
	if label := d.labelOf(spec, driver); label != "" {
		mounted.MountFlags = append(mounted.MountFlags, fmt.Sprintf("context=%q", label))
	}
	capability.AccessType = &csispec.VolumeCapability_Mount{Mount: mounted}
	return capability
}

// labelOf is the SELinux label that a volume for one pod is mounted with, if its driver can do that.
func (d *Driver) labelOf(spec volumes.Spec, driver storagev1.CSIDriverSpec) string {
	if !ptr.Deref(driver.SELinuxMount, false) || spec.PersistentVolume == nil || spec.Pod == nil {
		return ""
	}
	return d.Owner.LabelForOne(spec.Pod, spec.Volume.Name, spec.PersistentVolume)
}

func fsGroupOf(pod *corev1.Pod) (int64, bool) {
	if pod == nil || pod.Spec.SecurityContext == nil || pod.Spec.SecurityContext.FSGroup == nil {
		return 0, false
	}
	return *pod.Spec.SecurityContext.FSGroup, true
}

// NeedsGroup implements drivers.Foreign, by the fsGroupPolicy of the CSIDriver.
func (d *Driver) NeedsGroup(ctx context.Context, spec volumes.Spec) (bool, error) {
	if _, has := ownership.GroupOf(spec.Pod, spec.Access); !has || spec.Access != mount.ReadWrite || spec.IsBlock() {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.CallTimeout)
	defer cancel()
	can, err := d.abilities(ctx)
	if err != nil || can.group {
		return false, err
	}
	driver, err := d.object(ctx)
	if err != nil {
		return false, err
	}
	switch ptr.Deref(driver.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy) {
	case storagev1.NoneFSGroupPolicy:
		return false, nil
	case storagev1.FileFSGroupPolicy:
		return true, nil
	default:
		return isForOneNodeWithFSType(spec), nil
	}
}

func isForOneNodeWithFSType(spec volumes.Spec) bool {
	if sourceOf(spec).fsType == "" {
		return false
	}
	return spec.PersistentVolume == nil || slices.ContainsFunc(spec.PersistentVolume.Spec.AccessModes, func(mode corev1.PersistentVolumeAccessMode) bool {
		return mode == corev1.ReadWriteOnce || mode == corev1.ReadWriteOncePod
	})
}

// secret reads a secret that a volume names; empty if it names none.
func (d *Driver) secret(ctx context.Context, reference *corev1.SecretReference) (map[string]string, error) {
	if reference == nil {
		return nil, nil
	}
	data, err := d.Cluster.SecretData(ctx, *reference)
	if err != nil {
		return nil, fmt.Errorf("reading secret %s/%s, which the volume names: %w", reference.Namespace, reference.Name, err)
	}
	return data, nil
}

// extras are the attributes and secrets of a volume that depend on its pod.
func (d *Driver) extras(ctx context.Context, spec volumes.Spec, driver storagev1.CSIDriverSpec) (attributes, secrets map[string]string, err error) {
	of := sourceOf(spec)
	if secrets, err = d.secret(ctx, of.publishing); err != nil {
		return nil, nil, err
	}
	attributes = with(of.attributes, nil)
	if ptr.Deref(driver.PodInfoOnMount, false) {
		attributes = with(attributes, map[string]string{
			podNameKey: spec.Pod.Name, podNamespaceKey: spec.Pod.Namespace, podUIDKey: string(spec.Pod.UID),
			accountKey: spec.Pod.Spec.ServiceAccountName, ephemeralKey: strconv.FormatBool(of.ephemeral),
		})
	}
	tokens, err := d.tokens(ctx, spec.Pod, driver.TokenRequests)
	switch {
	case err != nil || tokens == nil:
		return attributes, secrets, err
	case ptr.Deref(driver.ServiceAccountTokenInSecrets, false):
		return attributes, with(secrets, tokens), nil
	default:
		return with(attributes, tokens), secrets, nil
	}
}

// tokens returns the tokens that a CSIDriver asks for, under the key of the API; nil if it asks for
// none. A device has none, as with a kubelet: see publish.
func (d *Driver) tokens(ctx context.Context, pod *corev1.Pod, requests []storagev1.TokenRequest) (map[string]string, error) {
	if len(requests) == 0 {
		return nil, nil
	}
	issued := map[string]authenticationv1.TokenRequestStatus{}
	for _, request := range requests {
		token, err := d.Cluster.IssuedToken(ctx, pod, request)
		if err != nil {
			return nil, fmt.Errorf("getting a token for CSI driver %s: %w", d.name, err)
		}
		issued[request.Audience] = token
	}
	content, err := json.Marshal(issued)
	return map[string]string{tokensKey: string(content)}, err
}

// with returns a copy of a map with the entries of another one.
func with(all, more map[string]string) map[string]string {
	both := maps.Clone(all)
	if both == nil && len(more) > 0 {
		both = map[string]string{}
	}
	maps.Copy(both, more)
	return both
}
