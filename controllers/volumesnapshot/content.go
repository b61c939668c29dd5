package volumesnapshot

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/storageclass"
)

// Parameters of a VolumeSnapshotClass that name the Secret of csi-snapshotter's calls. Both are templates.
const (
	secretNameParameter      = storageclass.SidecarPrefix + "snapshotter-secret-name"
	secretNamespaceParameter = storageclass.SidecarPrefix + "snapshotter-secret-namespace"
)

// newContent is the content that is made for a VolumeSnapshot of a volume.
func newContent(snapshot *snapshotv1.VolumeSnapshot, class *snapshotv1.VolumeSnapshotClass, pv *corev1.PersistentVolume) (*snapshotv1.VolumeSnapshotContent, error) {
	content := &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: snapshots.ContentName(snapshot.UID), Finalizers: []string{snapshots.ContentProtection}},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			VolumeSnapshotRef: corev1.ObjectReference{
				APIVersion: snapshotv1.SchemeGroupVersion.String(), Kind: "VolumeSnapshot",
				Namespace: snapshot.Namespace, Name: snapshot.Name, UID: snapshot.UID, ResourceVersion: snapshot.ResourceVersion,
			},
			Source:         snapshotv1.VolumeSnapshotContentSource{VolumeHandle: &pv.Spec.CSI.VolumeHandle},
			DeletionPolicy: class.DeletionPolicy, Driver: class.Driver, VolumeSnapshotClassName: &class.Name, SourceVolumeMode: pv.Spec.VolumeMode,
		},
	}
	return content, nameSecret(content, class)
}

// nameSecret records on a content which Secret deletes its snapshot: the class may be gone by then.
func nameSecret(content *snapshotv1.VolumeSnapshotContent, class *snapshotv1.VolumeSnapshotClass) error {
	name, hasName := class.Parameters[secretNameParameter]
	namespace, hasNamespace := class.Parameters[secretNamespaceParameter]
	switch {
	case !hasName && !hasNamespace:
		return nil
	case !hasName || !hasNamespace:
		return newProblem(event.SnapshotContentCreationFailed, "VolumeSnapshotClass %s has one of the parameters %s and %s: use a class with both, or with neither",
			class.Name, secretNameParameter, secretNamespaceParameter)
	}
	ref := content.Spec.VolumeSnapshotRef
	values := map[string]string{"volumesnapshotcontent.name": content.Name, "volumesnapshot.namespace": ref.Namespace}
	namespace, err := resolve(namespace, values, validation.IsDNS1123Label)
	if err == nil {
		values["volumesnapshot.name"] = ref.Name
		name, err = resolve(name, values, validation.IsDNS1123Subdomain)
	}
	if err != nil {
		return newProblem(event.SnapshotContentCreationFailed, "VolumeSnapshotClass %s names no Secret: %v", class.Name, err)
	}
	metav1.SetMetaDataAnnotation(&content.ObjectMeta, snapshots.DeletionSecretName, name)
	metav1.SetMetaDataAnnotation(&content.ObjectMeta, snapshots.DeletionSecretNamespace, namespace)
	return nil
}

// resolve replaces the variables of a template, all of which must be known.
func resolve(template string, values map[string]string, problemsOf func(string) []string) (string, error) {
	var unknown []string
	text := os.Expand(template, func(variable string) string {
		value, known := values[variable]
		if !known {
			unknown = append(unknown, variable)
		}
		return value
	})
	if len(unknown) > 0 {
		return "", fmt.Errorf("%.200q has the variable %.200q, which isn't one of %s", template, unknown[0], strings.Join(slices.Sorted(maps.Keys(values)), ", "))
	}
	if problems := problemsOf(text); len(problems) > 0 {
		return "", fmt.Errorf("%.200q is no name: %s", text, problems[0])
	}
	return text, nil
}
