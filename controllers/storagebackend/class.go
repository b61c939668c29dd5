package storagebackend

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/storageclass"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// classes keeps the StorageClasses of backends.
type classes struct {
	client client.Client
	events events.EventRecorder
}

// ensure keeps the StorageClass of the spec, and removes an earlier one with another
// name. It never touches a class that the backend does not own, nor a copy.
func (r classes) ensure(ctx context.Context, object *stowagev1alpha1.StorageBackend) error {
	name := classNameOf(object)
	if err := r.deleteBut(ctx, object, name); err != nil {
		return err
	}
	if name == "" {
		setCondition(object, stowagev1alpha1.StorageClassReadyCondition, metav1.ConditionTrue,
			stowagev1alpha1.ReasonNotRequested, "spec.storageClass is not set")
		return nil
	}
	desired, err := r.build(object, name)
	if err != nil {
		return err
	}
	class := &storagev1.StorageClass{}
	err = r.client.Get(ctx, client.ObjectKeyFromObject(desired), class)
	switch {
	case apierrors.IsNotFound(err):
		err = wrap.Error(r.client.Create(ctx, desired), "creating StorageClass %s", name)
	case err != nil:
		return fmt.Errorf("reading StorageClass %s: %w", name, err)
	case !metav1.IsControlledBy(class, object):
		setCondition(object, stowagev1alpha1.StorageClassReadyCondition, metav1.ConditionFalse,
			stowagev1alpha1.ReasonStorageClassConflict, fmt.Sprintf("StorageClass %s exists and is not this backend's: "+
				"delete it, or remove spec.storageClass and set it again with another name", name))
		return nil
	case !sameImmutable(class, desired):
		err = r.replace(ctx, class, desired)
	default:
		err = r.update(ctx, object, class)
	}
	if err != nil {
		return err
	}
	setOutcome(object, stowagev1alpha1.StorageClassReadyCondition, nil)
	return nil
}

// build builds the class of the spec, in memory.
func (r classes) build(object *stowagev1alpha1.StorageBackend, name string) (*storagev1.StorageClass, error) {
	template := object.Spec.StorageClass
	policy := template.ReclaimPolicy
	if policy == "" {
		policy = corev1.PersistentVolumeReclaimDelete
	}
	class := &storagev1.StorageClass{
		ObjectMeta:        metav1.ObjectMeta{Name: name, Labels: map[string]string{stowagev1alpha1.BackendLabel: object.Name}},
		Provisioner:       backend.DriverOf(object),
		Parameters:        parametersOf(object),
		ReclaimPolicy:     &policy,
		VolumeBindingMode: ptr.To(bindingModeOf(object)),
		AllowedTopologies: backend.TopologiesOf(object),
	}
	if err := controllerutil.SetControllerReference(object, class, r.client.Scheme()); err != nil {
		return nil, fmt.Errorf("owning StorageClass %s: %w", name, err)
	}
	setMutable(class, template)
	return class, nil
}

// parametersOf returns the parameters of the class. A driver that isn't one of Stowage's gets all
// parameters, and its provisioner alone names the backend.
func parametersOf(object *stowagev1alpha1.StorageBackend) map[string]string {
	if object.Spec.CSI != nil {
		return nil
	}
	return map[string]string{stowagev1alpha1.BackendParameter: object.Name}
}

// sameImmutable compares the immutable fields of a class. They differ if the backend's zones
// changed, or if the spec's class was removed and set again between two passes. The old class
// would otherwise continue to delete data that must be retained now.
func sameImmutable(class, desired *storagev1.StorageClass) bool {
	return class.Provisioner == desired.Provisioner && maps.Equal(class.Parameters, desired.Parameters) &&
		ptr.Equal(class.ReclaimPolicy, desired.ReclaimPolicy) && ptr.Equal(class.VolumeBindingMode, desired.VolumeBindingMode) &&
		equality.Semantic.DeepEqual(class.AllowedTopologies, desired.AllowedTopologies)
}

// replace recreates a class, with its foreign labels and annotations. After a crash
// between the two writes the next pass finds no class.
func (r classes) replace(ctx context.Context, class, desired *storagev1.StorageClass) error {
	others := maps.Clone(class.Annotations)
	delete(others, storageclass.AnnDefaultClass) // the spec decides this
	desired.Labels, desired.Annotations = merged(class.Labels, desired.Labels), merged(others, desired.Annotations)
	if err := r.delete(ctx, class); err != nil {
		return err
	}
	return wrap.Error(r.client.Create(ctx, desired), "creating StorageClass %s again", desired.Name)
}

func merged(before, desired map[string]string) map[string]string {
	both := maps.Clone(before)
	if both == nil {
		both = map[string]string{}
	}
	maps.Copy(both, desired)
	return both
}

func (r classes) update(ctx context.Context, object *stowagev1alpha1.StorageBackend, class *storagev1.StorageClass) error {
	before := class.DeepCopy()
	setMutable(class, object.Spec.StorageClass)
	if equality.Semantic.DeepEqual(before, class) {
		return nil
	}
	return wrap.Error(r.client.Patch(ctx, class, client.MergeFrom(before)), "updating StorageClass %s", class.Name)
}

func setMutable(class *storagev1.StorageClass, template *stowagev1alpha1.StorageClassTemplate) {
	metav1.SetMetaDataAnnotation(&class.ObjectMeta, stowagev1alpha1.KeptAsAnnotation, class.Name)
	class.AllowVolumeExpansion = ptr.To(template.AllowVolumeExpansion)
	class.MountOptions = nil
	for _, option := range template.MountOptions {
		class.MountOptions = append(class.MountOptions, string(option))
	}
	if template.IsDefault {
		metav1.SetMetaDataAnnotation(&class.ObjectMeta, storageclass.AnnDefaultClass, "true")
	} else {
		delete(class.Annotations, storageclass.AnnDefaultClass)
	}
}

// deleteBut deletes the classes that the backend owns under other names.
func (r classes) deleteBut(ctx context.Context, object *stowagev1alpha1.StorageBackend, keep string) error {
	classes := &storagev1.StorageClassList{}
	if err := r.client.List(ctx, classes); err != nil {
		return fmt.Errorf("listing StorageClasses: %w", err)
	}
	for i := range classes.Items {
		class := &classes.Items[i]
		if class.Name == keep || !metav1.IsControlledBy(class, object) || isCopy(class) {
			continue
		}
		if err := r.delete(ctx, class); err != nil {
			return err
		}
		r.events.Eventf(object, class, corev1.EventTypeNormal, event.StorageClassRemoved, "Removing",
			"removed StorageClass %s, which was kept for this backend: its spec requests another, or none", class.Name)
	}
	return nil
}

// isCopy reports whether a class is a copy of one that Stowage keeps. The copy has the same
// owner reference.
func isCopy(class *storagev1.StorageClass) bool {
	kept, known := class.Annotations[stowagev1alpha1.KeptAsAnnotation]
	return known && kept != class.Name
}

// delete deletes a class in the version that was read: a class that was recreated, or
// that a user has changed since, stays.
func (r classes) delete(ctx context.Context, class *storagev1.StorageClass) error {
	err := r.client.Delete(ctx, class, client.Preconditions{UID: &class.UID, ResourceVersion: &class.ResourceVersion})
	return wrap.Error(client.IgnoreNotFound(err), "deleting StorageClass %s", class.Name)
}

// classNameOf returns the name of the class that a backend's spec defines, or "".
func classNameOf(object *stowagev1alpha1.StorageBackend) string {
	switch template := object.Spec.StorageClass; {
	case template == nil:
		return ""
	case template.Name == "":
		return object.Name
	default:
		return template.Name
	}
}

// bindingModeOf returns when claims of the class are provisioned: storage that is not
// everywhere waits for the node of the pod.
func bindingModeOf(object *stowagev1alpha1.StorageBackend) storagev1.VolumeBindingMode {
	switch {
	case object.Spec.StorageClass.VolumeBindingMode != "":
		return object.Spec.StorageClass.VolumeBindingMode
	case object.Spec.NFS != nil:
		return storagev1.VolumeBindingImmediate
	default:
		return storagev1.VolumeBindingWaitForFirstConsumer
	}
}

// release removes the finalizer of the classes of a backend: no reconciler serves it any more, and no claim has a pending
// operation. With the finalizer, a class could not be deleted after Stowage is uninstalled.
func (r classes) release(ctx context.Context, live client.Reader, object *stowagev1alpha1.StorageBackend) error {
	classes := &storagev1.StorageClassList{}
	if err := live.List(ctx, classes); err != nil {
		return fmt.Errorf("listing the StorageClasses of StorageBackend %s: %w", object.Name, err)
	}
	for i := range classes.Items {
		class := &classes.Items[i]
		before := class.DeepCopy()
		if !isClassOf(class, object) || !controllerutil.RemoveFinalizer(class, stowagev1alpha1.ProvisioningFinalizer) {
			continue
		}
		if err := r.client.Patch(ctx, class, patch.Fenced(before)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing the finalizer of StorageClass %s: %w", class.Name, err)
		}
	}
	return nil
}

// isClassOf reports whether a class is one of a backend.
func isClassOf(class *storagev1.StorageClass, object *stowagev1alpha1.StorageBackend) bool {
	return class.Provisioner == backend.DriverOf(object) &&
		(object.Spec.CSI != nil || class.Parameters[stowagev1alpha1.BackendParameter] == object.Name)
}
