package resolve

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/inlinenfs"
)

//proves:inline/backend
func TestAPodNamesABackendAndNothingElse(t *testing.T) {
	tests := map[string]struct {
		source corev1.CSIVolumeSource
		says   string
	}{
		"a backend":              {corev1.CSIVolumeSource{VolumeAttributes: map[string]string{"backend": "share"}}, ""},
		"an empty file system":   {corev1.CSIVolumeSource{VolumeAttributes: map[string]string{"backend": "share"}, FSType: ptr.To("")}, ""},
		"nothing":                {corev1.CSIVolumeSource{}, "volumeAttributes.backend"},
		"a server":               {corev1.CSIVolumeSource{VolumeAttributes: map[string]string{"backend": "share", "server": "nfs"}}, `attribute "server"`},
		"a path, and no backend": {corev1.CSIVolumeSource{VolumeAttributes: map[string]string{"path": "/"}}, `attribute "path"`},
		"mount options":          {corev1.CSIVolumeSource{VolumeAttributes: map[string]string{"backend": "share", "mountOptions": "suid"}}, `attribute "mountOptions"`},
		"a file system":          {corev1.CSIVolumeSource{VolumeAttributes: map[string]string{"backend": "share"}, FSType: ptr.To("ext4")}, "leave it out"},
		"a secret": {corev1.CSIVolumeSource{
			VolumeAttributes:     map[string]string{"backend": "share"},
			NodePublishSecretRef: &corev1.LocalObjectReference{Name: "key"},
		}, "leave it out"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			backend, err := inlinenfs.BackendNamedBy(&test.source)
			if test.says == "" && (err != nil || backend != "share") {
				t.Errorf("got %q, %v", backend, err)
			}
			if test.says != "" && (!errors.Is(err, volumes.ErrNotSupported) || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("got %q, %v", backend, err)
			}
		})
	}
}

//proves:inline/record
func TestABackendAllowsVolumesWithoutAClaimOrSaysWhyNot(t *testing.T) {
	allowed := func() *stowagev1alpha1.StorageBackend {
		return &stowagev1alpha1.StorageBackend{Spec: stowagev1alpha1.StorageBackendSpec{NFS: &stowagev1alpha1.NFSBackend{AllowInline: true}}}
	}
	tests := map[string]struct {
		change func(*stowagev1alpha1.StorageBackend)
		says   string
	}{
		"one that does":       {func(*stowagev1alpha1.StorageBackend) {}, ""},
		"one that doesn't":    {func(b *stowagev1alpha1.StorageBackend) { b.Spec.NFS.AllowInline = false }, "set nfs.allowInline"},
		"one of another kind": {func(b *stowagev1alpha1.StorageBackend) { b.Spec.NFS = nil }, "has no NFS share"},
		"one that is going":   {func(b *stowagev1alpha1.StorageBackend) { b.DeletionTimestamp = &metav1.Time{} }, "is being deleted"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			backend := allowed()
			test.change(backend)
			err := checkAllowsInline(backend)
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}
