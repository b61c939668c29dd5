package projected_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/apidata/apidatatest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/projected"
)

func TestMain(m *testing.M) { mounttest.Main(m) }

//proves:projected/shown
func TestAProjectedVolumeIsShownInMemoryAlone(t *testing.T) {
	source := corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}
	apidatatest.MustMountInMemoryAlone(t, projected.New(mount.Kernel{}), "kubernetes.io/projected", source, "var/token")
}
