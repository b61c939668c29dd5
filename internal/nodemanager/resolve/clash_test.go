package resolve

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/emptydir"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/hostpath"
)

func TestAVolumeObjectDoesNotPassForAVolumeThatThePodNamesItself(t *testing.T) {
	host := corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv/own"}}
	memory := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	tests := map[string]struct {
		own     corev1.Volume
		refused bool
	}{
		"of the same name and type":  {corev1.Volume{Name: "pv", VolumeSource: host}, true},
		"of the same name":           {corev1.Volume{Name: "pv", VolumeSource: memory}, false},
		"of the same type":           {corev1.Volume{Name: "other", VolumeSource: host}, false},
		"that is by the same claim":  {nodetest.ClaimVolume("pv", false), false},
		"of the name of its request": {corev1.Volume{Name: "data", VolumeSource: host}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			claim, volume := nodetest.Bound()
			resolver := Resolver{Live: fake.NewClientBuilder().WithObjects(claim, volume).Build(), Types: volumes.Registry{
				hostpath.New(&mounttest.Fake{}, t.TempDir()), emptydir.New(&mounttest.Fake{}),
			}}
			source := nodetest.ClaimVolume("claimed", false)
			_, err := resolver.Resolve(t.Context(), nodetest.PodWith(test.own, source), source)
			if (err != nil) != test.refused || test.refused && !strings.Contains(err.Error(), "give the pod's volume another name") {
				t.Errorf("got %v", err)
			}
			if _, err := resolver.Resolve(t.Context(), nodetest.PodWith(test.own, source), test.own); err != nil {
				t.Errorf("the pod's own volume: %v", err)
			}
		})
	}
}
