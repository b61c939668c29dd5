package local_test

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestOnlyImagesKeepToTheirCapacityAndCanBeBlockDevices(t *testing.T) {
	cluster := newCluster(t, Node("node-1"))
	for name, options := range map[string][]func(*stowagev1alpha1.StorageBackend){"Directory": nil, "Image": {inImages}} {
		can := cluster.open(t, LocalBackend("disks", options...)).Capabilities()
		isImage := options != nil
		if can.Advisory == isImage || slices.Contains(can.VolumeModes, corev1.PersistentVolumeBlock) != isImage {
			t.Errorf("layout %s can %+v", name, can)
		}
	}
}

func TestAnImageIsAskedForAsItsBackendSays(t *testing.T) {
	for _, mode := range []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock} {
		t.Run(string(mode), func(t *testing.T) {
			cluster := newCluster(t, Node("node-1"))
			disks, request := cluster.open(t, LocalBackend("disks", inImages)), backendtest.Request("1")
			request.VolumeMode = mode
			_, _ = disks.Provision(t.Context(), request)
			cluster.actAsAgent(t.Context())
			made, err := disks.Provision(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			want := map[corev1.PersistentVolumeMode]string{corev1.PersistentVolumeFilesystem: "xfs"}[mode]
			asked := cluster.volume(t, "1").Spec
			if asked.FSType != want || asked.Allocation != stowagev1alpha1.AllocationSparse || asked.VolumeMode != mode {
				t.Errorf("it is asked for as %+v", asked)
			}
			if made.FSType != want || made.Attributes[stowagev1alpha1.LayoutAttribute] != "Image" {
				t.Errorf("the node is told %q, %v", made.FSType, made.Attributes)
			}
		})
	}
}

func TestAnImageHasTheFileSystemThatItsClassNames(t *testing.T) {
	cluster := newCluster(t, Node("node-1"))
	disks, request := cluster.open(t, LocalBackend("disks", inImages)), backendtest.Request("1")
	request.FSType = "ext4"
	_, _ = disks.Provision(t.Context(), request)
	if asked := cluster.volume(t, "1").Spec; asked.FSType != "ext4" {
		t.Errorf("it is asked for as %+v", asked)
	}
}

func TestTheSizeOfAnImageIsRoundedUpToWholeSectors(t *testing.T) {
	for asked, want := range map[string]string{"1": "512", "512": "512", "10000001": "10000384", "1Gi": "1Gi", "1G": "1G"} {
		cluster := newCluster(t, Node("node-1"))
		disks, request := cluster.open(t, LocalBackend("disks", inImages)), backendtest.Request("1")
		request.Capacity = resource.MustParse(asked)
		_, _ = disks.Provision(t.Context(), request)
		cluster.actAsAgent(t.Context())
		made, err := disks.Provision(t.Context(), request)
		if err != nil || made.Capacity.String() != want {
			t.Errorf("of %s asked for it has %+v, not %s (%v)", asked, made, want, err)
		}
	}
}

func TestMoreThanANodeVolumeCanHaveIsRefused(t *testing.T) {
	for _, most := range []string{"9223372036854775807", "5Ei"} {
		cluster := newCluster(t, Node("node-1"))
		disks, request := cluster.open(t, LocalBackend("disks", inImages)), backendtest.Request("1")
		_, _ = disks.Provision(t.Context(), request)
		cluster.actAsAgent(t.Context())
		before := cluster.volume(t, "1").Spec.Capacity
		_, err := grow(t, disks, most)
		expectError(t, err, backend.Invalid, "4Ei at most")
		if asked := cluster.volume(t, "1").Spec.Capacity; asked.Cmp(before) != 0 {
			t.Errorf("it asks for %s", asked.String())
		}
		request = backendtest.Request("2")
		request.Capacity = resource.MustParse(most)
		_, err = disks.Provision(t.Context(), request)
		expectError(t, err, backend.Invalid, "4Ei at most")
	}
}

func TestADirectoryHasTheSizeThatIsAskedForInWholeBytes(t *testing.T) {
	for size, want := range map[string]string{"10000001": "10000001", "0.1Gi": "107374183", "1Gi": "1Gi"} {
		cluster := newCluster(t, Node("node-1"))
		request := backendtest.Request("1")
		request.Capacity = resource.MustParse(size)
		_, _ = cluster.open(t, LocalBackend("disks")).Provision(t.Context(), request)
		if asked := cluster.volume(t, "1").Spec.Capacity; asked.String() != want {
			t.Errorf("of %s, %s is asked for", size, asked.String())
		}
	}
}

func TestADirectoryIsAskedForWithoutWhatImagesHave(t *testing.T) {
	cluster := newCluster(t, Node("node-1"))
	request := backendtest.Request("1")
	request.Capacity = resource.MustParse("10000001")
	_, _ = cluster.open(t, LocalBackend("disks")).Provision(t.Context(), request)
	asked := cluster.volume(t, "1").Spec
	if asked.Capacity.String() != "10000001" || asked.FSType != "" || asked.Allocation != "" {
		t.Errorf("it is asked for as %+v", asked)
	}
}

func TestTheNodeGrowsTheFileSystemInAnImageThatGrew(t *testing.T) {
	for mode, onNode := range map[corev1.PersistentVolumeMode]bool{
		corev1.PersistentVolumeFilesystem: true, corev1.PersistentVolumeBlock: false,
	} {
		cluster := newCluster(t, Node("node-1"))
		disks, request := cluster.open(t, LocalBackend("disks", inImages)), backendtest.Request("1")
		request.VolumeMode = mode
		_, _ = disks.Provision(t.Context(), request)
		cluster.actAsAgent(t.Context())
		if _, err := grow(t, disks, "5000001"); !errors.Is(err, backend.InProgress) {
			t.Fatal(err)
		}
		cluster.actAsAgent(t.Context())
		expanded, err := grow(t, disks, "5000001")
		if err != nil || expanded.Capacity.String() != "5000192" || expanded.OnNode != onNode {
			t.Errorf("in mode %s it answers %+v, %v", mode, expanded, err)
		}
	}
}

func TestAVolumeThatGrowsIsToldByWhatItIsThoughItsBackendMakesAnotherKindNow(t *testing.T) {
	for name, test := range map[string]struct {
		then, now []func(*stowagev1alpha1.StorageBackend)
		isImage   bool
	}{
		"a directory": {nil, []func(*stowagev1alpha1.StorageBackend){inImages}, false},
		"an image":    {[]func(*stowagev1alpha1.StorageBackend){inImages}, nil, true},
	} {
		cluster := newCluster(t, Node("node-1"))
		_, _ = cluster.open(t, LocalBackend("disks", test.then...)).Provision(t.Context(), backendtest.Request("1"))
		cluster.actAsAgent(t.Context())
		expanded, err := grow(t, cluster.open(t, LocalBackend("disks", test.now...)), "1Mi")
		if err != nil || expanded.Advisory == test.isImage || expanded.OnNode != test.isImage {
			t.Errorf("%s: it answers %+v, %v", name, expanded, err)
		}
	}
}

// inImages makes a backend one of sparse images with xfs.
func inImages(object *stowagev1alpha1.StorageBackend) {
	local := object.Spec.Local
	local.Layout, local.FSType, local.Allocation = stowagev1alpha1.LayoutImage, "xfs", stowagev1alpha1.AllocationSparse
}
