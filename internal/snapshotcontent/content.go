// Package snapshotcontent has what serves VolumeSnapshotContents and VolumeGroupSnapshotContents alike: what is written on them
// before and after a call of a driver, and said of them. The reconcilers of both use it. It calls no driver.
package snapshotcontent

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Content is a content of either kind.
type Content struct {
	client.Object
	*Kind
	Meta      *metav1.ObjectMeta
	Driver    string
	ClassName *string
	// Status returns the fields of the status about failures. It gives the object a status, in memory.
	Status func() (failure **snapshotv1.VolumeSnapshotError, ready **bool)
}

// Kind has the words of VolumeSnapshotContents, or those of VolumeGroupSnapshotContents.
type Kind struct {
	// Snapshots is the kind of what the contents are of, and Snapshot what is in the storage.
	Snapshots, Snapshot string
	// Class is an empty class.
	Class client.Object
	// Protection is a finalizer, BeingCreated an annotation, and DeleteError the reason of an event.
	Protection, BeingCreated, DeleteError string
}

// BeginCall records that the snapshot may exist from now on, with which parameters it is made, and what else changed since before.
func (c Content) BeginCall(ctx context.Context, to client.Client, before client.Object, parameters map[string]string) error {
	if err := snapshots.RecordParameters(c.Meta, parameters); err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(c.Meta, c.BeingCreated, "yes")
	return wrap.Error(to.Patch(ctx, c.Object, patch.Fenced(before)), "recording the call for %sContent %s", c.Snapshots, c.GetName())
}

// EndCall records that no call is open any more. After the last one, its parameters aren't needed either.
func (c Content) EndCall(ctx context.Context, to client.Client, last bool) error {
	before := c.DeepCopyObject().(client.Object)
	delete(c.Meta.Annotations, c.BeingCreated)
	if last {
		delete(c.Meta.Annotations, snapshots.Parameters)
	}
	return wrap.Error(to.Patch(ctx, c.Object, patch.Fenced(before)), "recording the answer for %sContent %s", c.Snapshots, c.GetName())
}

// Parameters are those of the content's class that are the driver's. A repeat has those of the first call.
func (c Content) Parameters(ctx context.Context, live client.Reader, object *stowagev1alpha1.StorageBackend, namespace string) (map[string]string, error) {
	if parameters, recorded, err := snapshots.RecordedParameters(c.Meta); recorded {
		return parameters, err
	}
	name, kind, read := ptr.Deref(c.ClassName, ""), c.Snapshots+"Class", c.Class.DeepCopyObject().(client.Object)
	if name == "" {
		return nil, backend.Invalid.Errorf("the content names no %s: create the %s with one", kind, c.Snapshots)
	}
	err := live.Get(ctx, client.ObjectKey{Name: name}, read)
	class := snapshots.ClassOf(read)
	switch {
	case apierrors.IsNotFound(err):
		return nil, backend.Invalid.Errorf("%s %s does not exist: create it, with the parameters that it had", kind, name)
	case err != nil:
		return nil, fmt.Errorf("reading %s %s: %w", kind, name, err)
	case class.Driver != c.Driver:
		return nil, backend.Invalid.Errorf("%s %s is of driver %.200q, and the content is of %.200q", kind, name, class.Driver, c.Driver)
	}
	return snapshots.DriverParameters(snapshots.Class{Kind: kind, Name: name, Parameters: class.Parameters}, object, namespace)
}

// Unprotect removes the finalizer of a content whose snapshot is gone, or stays.
func (c Content) Unprotect(ctx context.Context, to client.Client) error {
	before := c.DeepCopyObject().(client.Object)
	if !controllerutil.RemoveFinalizer(c.Object, c.Protection) {
		return nil
	}
	err := to.Patch(ctx, c.Object, patch.Fenced(before))
	return wrap.Error(client.IgnoreNotFound(err), "removing the finalizer of %sContent %s", c.Snapshots, c.GetName())
}
