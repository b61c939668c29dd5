package main

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

func TestAKubeletWritesInItsOwnFolderAndMakesNoCgroups(t *testing.T) {
	var read map[string]any
	if err := yaml.UnmarshalStrict(fmt.Appendf(nil, kubeletConfiguration, "/own"), &read); err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[string]any{
		"containerRuntimeEndpoint": "unix:///own/runtime.sock", "podLogsDir": "/own/logs", "volumePluginDir": "/own/plugins", "cgroupsPerQOS": false,
	} {
		if read[setting] != want {
			t.Errorf("%s is %v", setting, read[setting])
		}
	}
}

func TestAPodHasItsVolumesOnceItsNodeSaysSo(t *testing.T) {
	for of, has := range map[corev1.PodConditionType]bool{
		stowagev1alpha1.VolumesReadyCondition: true, corev1.PodReadyToStartContainers: true, corev1.PodInitialized: false,
	} {
		for status, is := range map[corev1.ConditionStatus]bool{corev1.ConditionTrue: has, corev1.ConditionFalse: false} {
			pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: of, Status: status}}}}
			if hasVolumes(pod) != is {
				t.Errorf("condition %s is %s, and it has its volumes: %t", of, status, !is)
			}
		}
	}
}

func TestWhereNoKubeletCanRunTheReasonIsGiven(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", t.TempDir())
	for _, quick := range []bool{false, true} {
		b := &testbed{options: options{quick: quick}, dir: t.TempDir()}
		if _, _, err := b.stockKubelet(); err == nil {
			t.Errorf("quick: %t: it runs", quick)
		}
	}
}
