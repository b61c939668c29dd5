package secret_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/apidata/apidatatest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/secret"
)

func TestMain(m *testing.M) { mounttest.Main(m) }

//proves:secret/shown
func TestASecretIsInMemoryAlone(t *testing.T) {
	source := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}
	apidatatest.MustMountInMemoryAlone(t, secret.New(mount.Kernel{}), "kubernetes.io/secret", source, "tls.key")
}
