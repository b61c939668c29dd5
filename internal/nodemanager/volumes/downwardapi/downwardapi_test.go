package downwardapi_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/apidata/apidatatest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/downwardapi"
)

func TestMain(m *testing.M) { mounttest.Main(m) }

//proves:downwardAPI/shown
func TestWhatAPodAsksOfItselfIsShownInMemoryAlone(t *testing.T) {
	source := corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{}}
	apidatatest.MustMountInMemoryAlone(t, downwardapi.New(mount.Kernel{}), "kubernetes.io/downward-api", source, "labels")
}
