package provisioning

import (
	"cmp"
	"maps"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/provisioning/csiclass"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/provisioned"
)

// RequestFrom returns a claim's request to a backend, without a node. Of a copy that was begun it has the
// recorded source. Of another it has no details of the source.
func RequestFrom(claim *corev1.PersistentVolumeClaim) backend.Request {
	request := backend.Request{
		ID:          provisioned.VolumeID(claim),
		Claim:       stowagev1alpha1.ClaimReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
		Labels:      claim.Labels,
		Annotations: ownersAnnotations(claim),
		Capacity:    claim.Spec.Resources.Requests[corev1.ResourceStorage],
		VolumeMode:  ptr.Deref(claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem),
		AccessModes: claim.Spec.AccessModes,
	}
	request.Source = provisioned.SourceOf(claim)
	return request
}

// ownersAnnotations returns the annotations that the claim's owner wrote. Those of controllers
// must not reach a backend.
func ownersAnnotations(claim *corev1.PersistentVolumeClaim) map[string]string {
	kept := maps.Clone(claim.Annotations)
	maps.DeleteFunc(kept, func(key, _ string) bool {
		prefix, _, _ := strings.Cut(key, "/")
		return prefix == stowagev1alpha1.GroupVersion.Group || strings.HasSuffix(prefix, "kubernetes.io")
	})
	return kept
}

// refuse returns why a claim is refused before any backend is called: nothing may be created
// for it.
func refuse(scope *step.Scope, object *stowagev1alpha1.StorageBackend) error {
	claim := scope.Claim
	switch {
	case !object.DeletionTimestamp.IsZero() && (object.Spec.CSI == nil || !provisioned.HasIntent(claim)):
		// A CSI driver goes on with its sidecars: they know nothing of an operation that is pending.
		return backend.Invalid.Errorf("StorageBackend %s is being deleted: use another class", object.Name)
	case needsClass(scope.Class, object) && !scope.Class.DeletionTimestamp.IsZero() && !provisioned.HasIntent(claim):
		return errDeletedClass(scope.Class)
	case backend.DriverOf(object) != scope.Class.Provisioner:
		return backend.Invalid.Errorf("StorageClass %s has the provisioner %s, but StorageBackend %s is served by %s: use a class with that provisioner",
			scope.Class.Name, scope.Class.Provisioner, object.Name, backend.DriverOf(object))
	case scope.Request.Node != nil && !backend.Allows(scope.Class.AllowedTopologies, scope.Request.Node):
		return backend.WrongNode.Errorf("node %s is not within the allowedTopologies of StorageClass %s (%s): place the pod elsewhere, or use another class",
			scope.Request.Node.Name, scope.Class.Name, backend.Mismatch(scope.Class.AllowedTopologies, scope.Request.Node))
	case scope.Class.Provisioner == stowagev1alpha1.NFSDriver && unknownVersion(scope.Class.MountOptions) != "":
		return backend.Invalid.Errorf("StorageClass %s has the mount option %q, which is no version of NFS: use vers=3, 4, 4.0, 4.1 or 4.2, in a new class",
			scope.Class.Name, unknownVersion(scope.Class.MountOptions))
	case claim.Spec.Selector != nil:
		return backend.Invalid.Errorf("a claim with a selector gets no volume made for it: remove the selector, or create a volume that it selects")
	case ptr.Deref(claim.Spec.VolumeAttributesClassName, "") != "" && !backend.HasAttributes(object):
		return backend.Invalid.Errorf("StorageBackend %s knows no volumeAttributesClass: create the claim without one", object.Name)
	}
	return nil
}

var (
	versionOption = regexp.MustCompile(`^((nfs)?vers=|v\d)`)
	knownVersion  = regexp.MustCompile(`^((nfs)?vers=|v)(3|4|4\.[012])$`)
)

// unknownVersion returns the mount option that names a version of NFS which doesn't exist; "" for
// none. No node could mount the volume. For StorageBackends, CEL has the same rule.
func unknownVersion(options []string) string {
	for _, option := range options {
		if versionOption.MatchString(option) && !knownVersion.MatchString(option) {
			return option
		}
	}
	return ""
}

// newVolume returns the PersistentVolume for storage that a backend made, tied to its claim.
func (r *Provisioner) newVolume(scope *step.Scope, object *stowagev1alpha1.StorageBackend, request backend.Request, made *backend.Volume) *corev1.PersistentVolume {
	pv := NewVolume(scope, object, request, made)
	if object.Spec.CSI != nil {
		csiclass.AsExternalProvisioner(pv, object, made, r.namespace)
	}
	if request.Attributes != nil {
		pv.Spec.VolumeAttributesClassName = &request.Attributes.Class
	}
	return pv
}

// NewVolume returns the PersistentVolume for storage that a backend of Stowage's own drivers made,
// tied to its claim.
func NewVolume(scope *step.Scope, object *stowagev1alpha1.StorageBackend, request backend.Request, made *backend.Volume) *corev1.PersistentVolume {
	claim, class := scope.Claim, scope.Class
	driver := backend.DriverOf(object)
	// A CSI source is immutable: what the deletion needs is safe there, even after class and
	// claim are gone.
	attributes := maps.Clone(made.Attributes)
	if attributes == nil {
		attributes = map[string]string{}
	}
	attributes[stowagev1alpha1.BackendAttribute] = object.Name
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        request.ID,
			Labels:      map[string]string{stowagev1alpha1.BackendLabel: object.Name},
			Annotations: map[string]string{volume.AnnDynamicallyProvisioned: driver},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: made.Capacity},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    &request.VolumeMode,
			StorageClassName:              class.Name,
			PersistentVolumeReclaimPolicy: ptr.Deref(class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete),
			MountOptions:                  class.MountOptions,
			NodeAffinity:                  cmp.Or(made.NodeAffinity, backend.AffinityTo(class.AllowedTopologies)),
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver:           driver,
				VolumeHandle:     made.Handle,
				VolumeAttributes: attributes,
				FSType:           made.FSType,
			}},
		},
	}
	controllerutil.AddFinalizer(pv, provisioned.ReclaimFinalizer(driver))
	if backend.NeedsAttach(driver) {
		// Set from the start, the finalizer needs no write at the first attach.
		controllerutil.AddFinalizer(pv, attachintent.Finalizer(driver))
	}
	binder.BindVolume(pv, claim)
	return pv
}

// NameOf returns the name of a node, or "" for nil.
func NameOf(node *corev1.Node) string {
	if node == nil {
		return ""
	}
	return node.Name
}
