package explain

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
	"github.com/stowage-dev/stowage/internal/kubectl/facts"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/volume"
)

// loader reads the objects of a chain. The first error ends it: later reads do nothing.
type loader struct {
	cluster *cluster.Cluster
	err     error
}

// get reads an object, if it has a name.
func get[T any, P interface {
	*T
	client.Object
}](ctx context.Context, l *loader, namespace, name string) read[T] {
	result := read[T]{name: name}
	if name == "" || l.err != nil {
		return result
	}
	result.presence, l.err = l.cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, P(&result.object))
	return result
}

func (l *loader) list(ctx context.Context, list client.ObjectList, options ...client.ListOption) {
	if l.err == nil {
		l.err = l.cluster.List(ctx, list, options...)
	}
}

func (l *loader) pod(ctx context.Context, key client.ObjectKey) *podFacts {
	found := &podFacts{pod: get[corev1.Pod](ctx, l, key.Namespace, key.Name)}
	pod := &found.pod.object
	found.place = l.place(ctx, pod.Spec.NodeName)
	found.events = l.events(ctx, pod)
	for i := range pod.Spec.Volumes {
		source := &pod.Spec.Volumes[i]
		if name := volume.ClaimName(pod, source); name != "" {
			v := l.claim(ctx, client.ObjectKey{Namespace: key.Namespace, Name: name}, pod.Spec.NodeName)
			v.volume = source.Name
			found.volumes = append(found.volumes, v)
		}
	}
	return found
}

// claim reads the chain of a claim. node is that of the pod, or "".
func (l *loader) claim(ctx context.Context, key client.ObjectKey, node string) stored {
	v := stored{claim: get[corev1.PersistentVolumeClaim](ctx, l, key.Namespace, key.Name)}
	claim := &v.claim.object
	v.pv = get[corev1.PersistentVolume](ctx, l, "", claim.Spec.VolumeName)
	if claim.Spec.StorageClassName != nil {
		v.class = get[storagev1.StorageClass](ctx, l, "", *claim.Spec.StorageClassName)
	}
	v.users = l.users(ctx, key)
	l.storage(ctx, &v, node)
	return v
}

// volumeObject reads the chain of a volume object.
func (l *loader) volumeObject(ctx context.Context, name string) stored {
	v := stored{pv: get[corev1.PersistentVolume](ctx, l, "", name)}
	pv := &v.pv.object
	v.class = get[storagev1.StorageClass](ctx, l, "", pv.Spec.StorageClassName)
	if ref := pv.Spec.ClaimRef; ref != nil {
		v.claim = get[corev1.PersistentVolumeClaim](ctx, l, ref.Namespace, ref.Name)
		v.users = l.users(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
	}
	l.storage(ctx, &v, "")
	return v
}

// storage reads what lies below claim, class and volume object.
func (l *loader) storage(ctx context.Context, v *stored, node string) {
	pv, class := &v.pv.object, &v.class.object
	driver, name := facts.Driver(pv), facts.Backend(pv)
	if !v.pv.found() {
		driver, name = class.Provisioner, class.Parameters[stowagev1alpha1.BackendParameter]
	}
	v.backend = l.backend(ctx, name, driver)
	v.driver = get[storagev1.CSIDriver](ctx, l, "", driver)
	if driver == stowagev1alpha1.LocalDriver {
		l.disk(ctx, v)
	}
	v.attachments = l.attachments(ctx, v.pv)
	if node == "" {
		node = facts.Node(pv)
	}
	if node == "" && len(v.attachments) > 0 {
		node = v.attachments[0].Spec.NodeName
	}
	v.place = l.place(ctx, node)
	v.events = l.events(ctx, &v.claim.object, pv)
}

// backend reads the StorageBackend with this name or, of a driver that isn't Stowage's own, the one
// with the driver's name. A driver without one is another program's.
func (l *loader) backend(ctx context.Context, name, driver string) read[stowagev1alpha1.StorageBackend] {
	if driver == "" || backend.IsOurs(driver) {
		return get[stowagev1alpha1.StorageBackend](ctx, l, "", name)
	}
	found := get[stowagev1alpha1.StorageBackend](ctx, l, "", driver)
	if found.found() && !facts.IsCSI(&found.object) || found.presence == cluster.Absent {
		return read[stowagev1alpha1.StorageBackend]{}
	}
	return found
}

// disk reads the NodeVolume, also of a volume that is being made, and its NodeDisk.
func (l *loader) disk(ctx context.Context, v *stored) {
	id := facts.Handle(&v.pv.object)
	if !v.pv.found() && v.claim.found() {
		id = provisioned.VolumeID(&v.claim.object)
	}
	v.nodeVolume = get[stowagev1alpha1.NodeVolume](ctx, l, "", id)
	if !v.nodeVolume.found() {
		return
	}
	disks := &stowagev1alpha1.NodeDiskList{}
	l.list(ctx, disks)
	spec := v.nodeVolume.object.Spec
	v.nodeDisk.name = spec.Backend + " on " + spec.NodeName
	for _, disk := range disks.Items {
		if disk.Spec.NodeName == spec.NodeName && disk.Spec.Backend == spec.Backend {
			v.nodeDisk = read[stowagev1alpha1.NodeDisk]{name: disk.Name, presence: cluster.Found, object: disk}
		}
	}
}

func (l *loader) place(ctx context.Context, node string) place {
	return place{node: get[corev1.Node](ctx, l, "", node), csiNode: get[storagev1.CSINode](ctx, l, "", node)}
}

// attachments are those of a volume object, on any node.
func (l *loader) attachments(ctx context.Context, pv read[corev1.PersistentVolume]) []storagev1.VolumeAttachment {
	if !pv.found() {
		return nil
	}
	all := &storagev1.VolumeAttachmentList{}
	l.list(ctx, all)
	return slices.DeleteFunc(all.Items, func(a storagev1.VolumeAttachment) bool {
		return a.Spec.Source.PersistentVolumeName == nil || *a.Spec.Source.PersistentVolumeName != pv.name
	})
}

// users are the names of the pods that use a claim and haven't ended.
func (l *loader) users(ctx context.Context, claim client.ObjectKey) []string {
	pods, names := &corev1.PodList{}, []string(nil)
	l.list(ctx, pods, client.InNamespace(claim.Namespace))
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return volume.ClaimName(pod, &v) == claim.Name }) {
			names = append(names, pod.Name)
		}
	}
	return names
}

// events are the recent ones of objects that exist, the newest first.
func (l *loader) events(ctx context.Context, objects ...client.Object) []corev1.Event {
	var all []corev1.Event
	for _, object := range objects {
		if object.GetUID() == "" {
			continue
		}
		list, namespace := &corev1.EventList{}, object.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		l.list(ctx, list, client.InNamespace(namespace),
			client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("involvedObject.uid", string(object.GetUID()))})
		all = append(all, list.Items...)
	}
	return facts.RecentEvents(all, l.cluster.Clock.Now())
}
