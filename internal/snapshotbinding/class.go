package snapshotbinding

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Class reads the class of a snapshot, and gives the default class of a driver to one without. Reads are live: there are few.
func (b *Binder) Class(ctx context.Context, of Snapshot, driver string) (*snapshotv1.VolumeSnapshotClass, error) {
	if *of.Class == nil {
		return b.setDefaultClass(ctx, of, driver)
	}
	name, class := **of.Class, b.Kind.Class.DeepCopyObject().(client.Object)
	err := b.Live.Get(ctx, client.ObjectKey{Name: name}, class)
	if name == "" || apierrors.IsNotFound(err) {
		return nil, snapshots.NewProblem(b.Kind.Reasons.NoClass, b.Kind.NoClass, name)
	}
	return snapshots.ClassOf(class), wrap.Error(err, "reading %sClass %s", b.Kind.Name, name)
}

// setDefaultClass writes the default class of a driver into a snapshot.
func (b *Binder) setDefaultClass(ctx context.Context, of Snapshot, driver string) (*snapshotv1.VolumeSnapshotClass, error) {
	all := b.Kind.Classes.DeepCopyObject().(client.ObjectList)
	if err := b.Live.List(ctx, all); err != nil {
		return nil, fmt.Errorf("listing the %sClasses: %w", b.Kind.Name, err)
	}
	var found []*snapshotv1.VolumeSnapshotClass
	err := meta.EachListItem(all, func(object runtime.Object) error {
		if class := snapshots.ClassOf(object); class.Driver == driver && class.Annotations[b.Kind.DefaultClass] == "true" {
			found = append(found, class)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, snapshots.NewProblem(b.Kind.Reasons.NoDefaultClass, "%d %sClasses of driver %.200q have the annotation %s: have one class with it, or name a class in a new %s",
			len(found), b.Kind.Name, driver, b.Kind.DefaultClass, b.Kind.Name)
	}
	before := of.DeepCopyObject().(client.Object)
	*of.Class = &found[0].Name
	return found[0], wrap.Error(b.Client.Patch(ctx, of.Object, patch.Fenced(before)), "giving %s %s its class", b.Kind.Name, of.GetName())
}

// NameSecret records on a content, in memory, which Secret deletes its snapshot: the class may be gone by then.
func (b *Binder) NameSecret(content Content, class *snapshotv1.VolumeSnapshotClass) error {
	words, of := b.Kind.Secret, snapshots.Class{Kind: b.Kind.Name + "Class", Name: class.Name, Parameters: class.Parameters}
	secret, err := snapshots.DeletionSecret(of, words.Parameters, words.Variables, content.GetName(), *content.Ref)
	if err != nil {
		return snapshots.NewProblem(b.Kind.Reasons.CreationFailed, "%v", err)
	}
	if secret.Name != "" {
		metav1.SetMetaDataAnnotation(content.Meta, words.Name, secret.Name)
		metav1.SetMetaDataAnnotation(content.Meta, words.Namespace, secret.Namespace)
	}
	return nil
}
