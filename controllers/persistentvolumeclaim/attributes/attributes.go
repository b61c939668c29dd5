// Package attributes reads what the VolumeAttributesClass of a claim says to a backend: when a
// volume is made, and when it changes. It reads classes live, and writes nothing.
package attributes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// maxParameters and maxBytes bound what a class makes a call carry.
const maxParameters, maxBytes = 256, 32 << 10

// ClassNamed reads a class, or returns nil.
func ClassNamed(ctx context.Context, live client.Reader, name string) (*storagev1.VolumeAttributesClass, error) {
	class := &storagev1.VolumeAttributesClass{}
	if err := live.Get(ctx, client.ObjectKey{Name: name}, class); err != nil {
		return nil, wrap.Error(client.IgnoreNotFound(err), "reading VolumeAttributesClass %s", name)
	}
	return class, nil
}

// Of returns what a class says to the backends of a driver.
func Of(class *storagev1.VolumeAttributesClass, driver string) (backend.Attributes, error) {
	if class.DriverName != driver {
		return backend.Attributes{}, backend.Invalid.Errorf("VolumeAttributesClass %s is for driver %.200q, and the volume is of driver %s: name a class of that driver",
			class.Name, class.DriverName, driver)
	}
	size := 0
	for key, value := range class.Parameters {
		size += len(key) + len(value)
	}
	if len(class.Parameters) > maxParameters || size > maxBytes {
		return backend.Attributes{}, backend.Invalid.Errorf("VolumeAttributesClass %s has %d parameters of %d bytes: use a class with at most %d parameters and %d bytes",
			class.Name, len(class.Parameters), size, maxParameters, maxBytes)
	}
	return backend.Attributes{Class: class.Name, UID: class.UID, Parameters: class.Parameters}, nil
}

// Fill adds to a request what the class of its claim says. The name in an unbound claim is immutable, and
// the class is protected while the claim names it.
func Fill(ctx context.Context, live client.Reader, claim *corev1.PersistentVolumeClaim, request *backend.Request, object *stowagev1alpha1.StorageBackend) error {
	name := ptr.Deref(claim.Spec.VolumeAttributesClassName, "")
	if name == "" || !backend.HasAttributes(object) {
		return nil
	}
	class, err := ClassNamed(ctx, live, name)
	switch {
	case err != nil:
		return err
	case class == nil:
		return backend.Unavailable.Errorf("VolumeAttributesClass %s does not exist: create it, or create the claim with another", name)
	case !class.DeletionTimestamp.IsZero() && !provisioned.HasIntent(claim):
		return backend.Invalid.Errorf("VolumeAttributesClass %s is being deleted: create the claim with another", name)
	}
	attributes, err := Of(class, backend.DriverOf(object))
	if err != nil {
		return err
	}
	request.Attributes = &attributes
	return nil
}

// ClassOf identifies the class of a request; nil where it has none.
func ClassOf(request backend.Request) *provisioned.Class {
	if request.Attributes == nil {
		return nil
	}
	return &provisioned.Class{Name: request.Attributes.Class, UID: request.Attributes.UID}
}

// Recorded returns what the class of a pending operation says, for a repeat of the call. It is nil where that class is gone, or
// was created again: the call is repeated without it, so that the claim can be deleted.
func Recorded(ctx context.Context, live client.Reader, began *provisioned.Class) (*backend.Attributes, error) {
	if began == nil {
		return nil, nil
	}
	class, err := ClassNamed(ctx, live, began.Name)
	if err != nil || class == nil || class.UID != began.UID {
		return nil, err
	}
	return &backend.Attributes{Class: class.Name, UID: class.UID, Parameters: class.Parameters}, nil
}

// FillAgain is Fill for an operation that is undone. A class that was created again since may have other
// parameters, with which the driver doesn't find what it made.
func FillAgain(ctx context.Context, live client.Reader, claim *corev1.PersistentVolumeClaim, request *backend.Request, object *stowagev1alpha1.StorageBackend) error {
	if err := Fill(ctx, live, claim, request, object); err != nil {
		return fmt.Errorf("volume %s may have been made: %w", provisioned.VolumeID(claim), err)
	}
	// An annotation that can't be read, or that a user wrote, is no hint.
	operation, _ := provisioned.IntentOf(claim)
	began, now := operation.Attributes, ClassOf(*request)
	if began == nil || now == nil || began.Name != now.Name || began.UID == now.UID {
		return nil
	}
	return backend.Invalid.Errorf("VolumeAttributesClass %s, with whose parameters volume %s may have been made, was created again: "+
		"remove that volume from the storage by hand, if it is there, and then the finalizer %s from the claim",
		now.Name, provisioned.VolumeID(claim), stowagev1alpha1.ProvisioningFinalizer)
}
