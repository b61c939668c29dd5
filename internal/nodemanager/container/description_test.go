package container_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/container"
)

// pod has a volume of each kind.
func pod() container.Pod {
	part := func(name string, index int) string {
		return fmt.Sprintf("/pods/1/volume-subpaths/data/%s/%d", name, index)
	}
	return container.Pod{
		Volumes: map[string]container.Volume{
			"data":   {Path: "/pods/1/volumes/data", Part: part},
			"config": {Path: "/pods/1/volumes/config", Access: mount.ReadOnly},
			"disk":   {Path: "/pods/1/volumeDevices/disk", Device: container.Numbers{Major: 7, Minor: 3}},
			"image":  {Path: "/pods/1/volumeDevices/image", Device: container.Numbers{Major: 7, Minor: 4}, Access: mount.ReadOnly},
		},
		Groups: []int64{4711, 4712},
	}
}

// optionsOf is the options of a container's only mount.
func optionsOf(t *testing.T, wanted corev1.VolumeMount) string {
	t.Helper()
	wanted.MountPath = "/there"
	description, err := pod().Describe(corev1.Container{Name: "main", VolumeMounts: []corev1.VolumeMount{wanted}})
	if err != nil || len(description.Mounts) != 1 {
		t.Fatalf("got %+v (%v)", description, err)
	}
	return strings.Join(description.Mounts[0].Options, ",")
}

//proves:every/volumeMount
func TestAMountHasTheOptionsOfThePodsSpec(t *testing.T) {
	tests := map[string]struct {
		mount corev1.VolumeMount
		want  string
	}{
		"nothing":                            {corev1.VolumeMount{Name: "data"}, "rbind,rprivate"},
		"reading only":                       {corev1.VolumeMount{Name: "data", ReadOnly: true}, "rbind,rprivate,ro"},
		"a volume that is only read":         {corev1.VolumeMount{Name: "config"}, "rbind,rprivate,ro"},
		"no propagation":                     {corev1.VolumeMount{Name: "data", MountPropagation: new(corev1.MountPropagationNone)}, "rbind,rprivate"},
		"mounts of the node":                 {corev1.VolumeMount{Name: "data", MountPropagation: new(corev1.MountPropagationHostToContainer)}, "rbind,rslave"},
		"mounts for the node":                {corev1.VolumeMount{Name: "data", MountPropagation: new(corev1.MountPropagationBidirectional)}, "rbind,rshared"},
		"reading only, all below":            {corev1.VolumeMount{Name: "data", ReadOnly: true, RecursiveReadOnly: new(corev1.RecursiveReadOnlyEnabled)}, "rbind,rprivate,ro,rro"},
		"reading only, below if possible":    {corev1.VolumeMount{Name: "data", ReadOnly: true, RecursiveReadOnly: new(corev1.RecursiveReadOnlyIfPossible)}, "rbind,rprivate,ro,rro"},
		"reading only, but not what's below": {corev1.VolumeMount{Name: "data", ReadOnly: true, RecursiveReadOnly: new(corev1.RecursiveReadOnlyDisabled)}, "rbind,rprivate,ro"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := optionsOf(t, test.mount); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestAPartOfAVolumeIsWhereItWasMountedForThisContainer(t *testing.T) {
	mounts := []corev1.VolumeMount{{Name: "data", MountPath: "/all"}, {Name: "data", MountPath: "/logs", SubPathExpr: "$(POD)"}}
	description, err := pod().Describe(corev1.Container{Name: "main", VolumeMounts: mounts})
	if err != nil || description.Mounts[0].Source != "/pods/1/volumes/data" || description.Mounts[1].Source != "/pods/1/volume-subpaths/data/main/1" {
		t.Errorf("got %+v (%v)", description.Mounts, err)
	}
}

func TestAMountInsideAnotherMountComesAfterIt(t *testing.T) {
	var mounts []corev1.VolumeMount
	for _, path := range []string{"/a/b/c", "/x", "relative/", "/a/b", "/", "/a"} {
		mounts = append(mounts, corev1.VolumeMount{Name: "data", MountPath: path})
	}
	description, err := pod().Describe(corev1.Container{VolumeMounts: mounts})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, mount := range description.Mounts {
		got = append(got, mount.Destination)
	}
	if want := []string{"/", "/x", "/relative", "/a", "/a/b", "/a/b/c"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestADeviceIsDescribedByItsNumbers(t *testing.T) {
	devices := []corev1.VolumeDevice{{Name: "disk", DevicePath: "/dev/xvda"}, {Name: "image", DevicePath: "/dev/xvdb"}}
	description, err := pod().Describe(corev1.Container{VolumeDevices: devices})
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(description)
	const want = `{"mounts":[],"devices":[` +
		`{"path":"/dev/xvda","type":"b","major":7,"minor":3,"source":"/pods/1/volumeDevices/disk","access":"rwm"},` +
		`{"path":"/dev/xvdb","type":"b","major":7,"minor":4,"source":"/pods/1/volumeDevices/image","access":"r"}],` +
		`"additionalGids":[4711,4712]}`
	if err != nil || string(got) != want {
		t.Errorf("got %s (%v)", got, err)
	}
}

func TestAVolumeThatThePodHasNotIsAnError(t *testing.T) {
	if _, err := pod().Describe(corev1.Container{Name: "main", VolumeMounts: []corev1.VolumeMount{{Name: "none"}}}); err == nil {
		t.Error("nothing is said of it")
	}
}

func TestEveryContainerIsKnownAndWhetherItRuns(t *testing.T) {
	running := corev1.ContainerStatus{Name: "debug", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	pod := &corev1.Pod{
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "first"}}, Containers: []corev1.Container{{Name: "main"}},
			EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}},
		},
		Status: corev1.PodStatus{EphemeralContainerStatuses: []corev1.ContainerStatus{running}, ContainerStatuses: []corev1.ContainerStatus{{Name: "main"}}},
	}
	var got []string
	for _, each := range container.All(pod) {
		got = append(got, fmt.Sprint(each.Name, " ", container.IsRunning(pod, each.Name)))
	}
	if want := []string{"first false", "main false", "debug true"}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}
