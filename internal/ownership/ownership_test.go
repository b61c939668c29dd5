package ownership_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/ownership"
)

func TestMain(m *testing.M) { mounttest.Main(m) }

func podWith(security *corev1.PodSecurityContext) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: security}}
}

func TestAGroupIsWhatThePodAsksFor(t *testing.T) {
	tests := map[string]struct {
		security *corev1.PodSecurityContext
		wanted   bool
		once     bool
	}{
		"no security context": {nil, false, false},
		"no group":            {&corev1.PodSecurityContext{}, false, false},
		"a group":             {&corev1.PodSecurityContext{FSGroup: new(int64(7))}, true, false},
		"always":              {&corev1.PodSecurityContext{FSGroup: new(int64(7)), FSGroupChangePolicy: new(corev1.FSGroupChangeAlways)}, true, false},
		"on mismatch":         {&corev1.PodSecurityContext{FSGroup: new(int64(7)), FSGroupChangePolicy: new(corev1.FSGroupChangeOnRootMismatch)}, true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			group, wanted := ownership.GroupOf(podWith(test.security), mount.ReadWrite)
			if wanted != test.wanted || group.OnMismatch != test.once || wanted && group.ID != 7 {
				t.Errorf("got %+v, %v", group, wanted)
			}
		})
	}
	if _, wanted := ownership.GroupOf(nil, mount.ReadWrite); wanted {
		t.Error("a pod that isn't known has a group")
	}
}

func TestAVolumeThatManyNodesMayWriteGetsNoGroup(t *testing.T) {
	tests := map[string]struct {
		modes []corev1.PersistentVolumeAccessMode
		given bool
	}{
		"one node":         {[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, true},
		"one pod":          {[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}, true},
		"one among others": {[]corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany, corev1.ReadWriteOnce}, true},
		"many nodes":       {[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, false},
		"readers only":     {[]corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}, false},
		"it has no modes":  {nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			volume := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{AccessModes: test.modes}}
			if got := ownership.IsForOneNode(volume); got != test.given {
				t.Errorf("got %v", got)
			}
		})
	}
}

//proves:every/groups
func TestAPodsProcessesHaveTheGroupsOfItsVolumesOnce(t *testing.T) {
	volume := func(group string) *corev1.PersistentVolume {
		made := &corev1.PersistentVolume{}
		made.Annotations = map[string]string{"pv.beta.kubernetes.io/gid": group}
		return made
	}
	volumes := []*corev1.PersistentVolume{volume("30"), volume("10"), volume("wheel"), volume("-1"), volume("4294967296"), {}}
	security := &corev1.PodSecurityContext{FSGroup: new(int64(20)), SupplementalGroups: []int64{40, 10}}
	if got := ownership.SupplementalGroups(podWith(security), volumes); !slices.Equal(got, []int64{10, 20, 30, 40}) {
		t.Errorf("got %v", got)
	}
	if got := ownership.SupplementalGroups(podWith(nil), nil); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

//proves:every/SELinux
func TestAVolumeIsMountedWithALabelIfAllItsContainersAgree(t *testing.T) {
	level := func(level string) *corev1.SELinuxOptions { return &corev1.SELinuxOptions{Type: "spc_t", Level: level} }
	recursive := &corev1.PodSecurityContext{SELinuxOptions: level("s0:c1,c2"), SELinuxChangePolicy: new(corev1.SELinuxChangePolicyRecursive)}
	tests := map[string]struct {
		pod  *corev1.PodSecurityContext
		seen []*corev1.SELinuxOptions
		want string
	}{
		"nothing is said":      {nil, []*corev1.SELinuxOptions{nil}, ""},
		"the pod says it":      {&corev1.PodSecurityContext{SELinuxOptions: level("s0:c1,c2")}, []*corev1.SELinuxOptions{nil}, "system_u:object_r:container_file_t:s0:c1,c2"},
		"its containers do":    {nil, []*corev1.SELinuxOptions{level("s0:c3"), level("s0:c3")}, "system_u:object_r:container_file_t:s0:c3"},
		"with a user":          {nil, []*corev1.SELinuxOptions{{User: "staff_u", Level: "s0"}}, "staff_u:object_r:container_file_t:s0"},
		"two differ":           {nil, []*corev1.SELinuxOptions{level("s0:c3"), level("s0:c4")}, ""},
		"one is left open":     {nil, []*corev1.SELinuxOptions{level("s0:c3"), nil}, ""},
		"no level":             {nil, []*corev1.SELinuxOptions{{Type: "container_t"}}, ""},
		"no container sees it": {&corev1.PodSecurityContext{SELinuxOptions: level("s0")}, nil, ""},
		"file by file":         {recursive, []*corev1.SELinuxOptions{nil}, ""},
		"one replaces it":      {&corev1.PodSecurityContext{SELinuxOptions: level("s0")}, []*corev1.SELinuxOptions{level("s0:c5")}, "system_u:object_r:container_file_t:s0:c5"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := podWith(test.pod)
			pod.Spec.Containers = []corev1.Container{{Name: "without it"}}
			for _, options := range test.seen {
				container := corev1.Container{VolumeMounts: []corev1.VolumeMount{{Name: "data"}}}
				container.SecurityContext = &corev1.SecurityContext{SELinuxOptions: options}
				pod.Spec.InitContainers = append(pod.Spec.InitContainers, container)
			}
			if got := ownership.Label(pod, "data"); got != test.want {
				t.Errorf("got %q", got)
			}
			if got := (ownership.Owner{}).Label(pod, "data"); got != "" {
				t.Errorf("without SELinux: %q", got)
			}
		})
	}
}

//proves:every/SELinux
func TestOnlyAVolumeForOnePodHasALabelOfItsOwn(t *testing.T) {
	pod := podWith(&corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Level: "s0"}})
	pod.Spec.Containers = []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{Name: "data"}}}}
	owner, volume := ownership.Owner{SELinux: true}, &corev1.PersistentVolume{}
	volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	if got := owner.LabelForOne(pod, "data", volume); got != "" {
		t.Errorf("got %q", got)
	}
	volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	label := owner.LabelForOne(pod, "data", volume)
	settings := ownership.LabelSettings(label)
	if len(settings) != 1 || settings[0] != (mount.Setting{Key: "context", Value: "system_u:object_r:container_file_t:s0"}) {
		t.Errorf("got %+v", settings)
	}
	if got := ownership.LabelSettings(""); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}
