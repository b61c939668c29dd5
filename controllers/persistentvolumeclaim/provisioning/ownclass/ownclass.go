// Package ownclass reads the StorageClasses of Stowage's own drivers. Those of a cloud may have parameters
// that only the storage understands: its StorageBackend says which.
//
// A cloud takes a call with other parameters for another call. So the class is kept while a call is
// pending, and an undo repeats the call with the same parameters.
package ownclass

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/storageclass"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Fill adds to a request what a class says. Its errors are of kind Invalid.
func Fill(request *backend.Request, class *storagev1.StorageClass, object *stowagev1alpha1.StorageBackend) error {
	parameters, err := backend.ParseClass(object, class.Parameters)
	request.FSType, request.Parameters = parameters.FSType, parameters.Storage
	return err
}

// Needs reports whether calls for a class have parameters that only the storage understands.
func Needs(class *storagev1.StorageClass, object *stowagev1alpha1.StorageBackend) bool {
	return object.Spec.GCE != nil && len(storageclass.DriverParameters(class)) > 0
}

// FillAgain adds to the repeat of a pending call the parameters that its class has, live. It adds none
// where the class is gone, or was created again: then the call is repeated without them, so that the
// claim can be deleted.
func FillAgain(ctx context.Context, live client.Reader, claim *corev1.PersistentVolumeClaim, operation provisioned.Intent, request *backend.Request) error {
	// A record without a backend can't be read: then the claim's class has the parameters.
	isUnknown := operation.Backend == ""
	if !isUnknown && operation.Class == nil {
		return nil
	}
	class := &storagev1.StorageClass{}
	if err := live.Get(ctx, client.ObjectKey{Name: storageclass.Of(claim)}, class); err != nil {
		return wrap.Error(client.IgnoreNotFound(err), "reading StorageClass %s", storageclass.Of(claim))
	}
	// The claim's own class alone counts: users can write the record.
	if isUnknown || class.UID == operation.Class.UID {
		request.Parameters = storageclass.DriverParameters(class)
	}
	return nil
}
