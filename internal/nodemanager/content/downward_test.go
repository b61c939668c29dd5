package content_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func ofDownwardAPI(items ...corev1.DownwardAPIVolumeFile) corev1.VolumeSource {
	return corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: items}}
}

func ofField(field string) corev1.VolumeSource {
	return ofDownwardAPI(corev1.DownwardAPIVolumeFile{Path: "f", FieldRef: &corev1.ObjectFieldSelector{FieldPath: field}})
}

func ofResource(container, name, divisor string) corev1.VolumeSource {
	selector := &corev1.ResourceFieldSelector{ContainerName: container, Resource: name}
	if divisor != "" {
		selector.Divisor = resource.MustParse(divisor)
	}
	return ofDownwardAPI(corev1.DownwardAPIVolumeFile{Path: "f", ResourceFieldRef: selector})
}

//proves:downwardAPI/shown
func TestADownwardAPIVolumeHasFieldsOfThePod(t *testing.T) {
	tests := map[string]string{
		"metadata.name":                              "web",
		"metadata.namespace":                         "default",
		"metadata.uid":                               "u-1",
		"metadata.labels":                            "app=\"shop\"\ntier=\"front\"",
		"metadata.annotations":                       `example.com/Note="say \"hi\"\nand go"`,
		"metadata.labels['tier']":                    "front",
		"metadata.labels['none']":                    "",
		"metadata.annotations['example.com/Note']":   "say \"hi\"\nand go",
		"metadata.annotations['example.com/absent']": "",
	}
	for field, want := range tests {
		t.Run(field, func(t *testing.T) { mustShow(t, ofField(field), "f 0644 root "+want) })
	}
}

//proves:downwardAPI/shown
func TestADownwardAPIVolumeHasResourcesOfAContainer(t *testing.T) {
	pod := web()
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1100m"), corev1.ResourceMemory: resource.MustParse("33Mi"),
			"hugepages-2Mi": resource.MustParse("4Mi"),
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("65Mi"), "hugepages-2Mi": resource.MustParse("4Mi")},
	}
	pod.Spec.InitContainers = []corev1.Container{{Name: "first"}}
	tests := map[string]struct{ container, resource, divisor, want string }{
		"rounded up to whole processors":          {"main", "requests.cpu", "", "2"},
		"in thousandths of processors":            {"main", "requests.cpu", "1m", "1100"},
		"in bytes":                                {"main", "limits.memory", "", "68157440"},
		"in units":                                {"main", "limits.memory", "1Mi", "65"},
		"rounded up to whole units":               {"main", "requests.memory", "32Mi", "2"},
		"what isn't asked for is nothing":         {"main", "requests.ephemeral-storage", "", "0"},
		"without a limit, what the node has":      {"main", "limits.cpu", "1m", "3900"},
		"the same for its memory":                 {"first", "limits.memory", "1Gi", "7"},
		"the same for its disk":                   {"main", "limits.ephemeral-storage", "1Gi", "100"},
		"huge pages that are asked for":           {"main", "requests.hugepages-2Mi", "1Mi", "4"},
		"huge pages that are allowed":             {"main", "limits.hugepages-2Mi", "1Mi", "4"},
		"huge pages without a limit aren't there": {"first", "limits.hugepages-2Mi", "", "0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, _, err := shown(t, cluster(), pod, ofResource(test.container, test.resource, test.divisor))
			if err != nil || got != "f 0644 root "+test.want {
				t.Errorf("shown: %s (%v)", got, err)
			}
		})
	}
}

func TestFilesOfItselfHaveTheirOwnModes(t *testing.T) {
	own := corev1.DownwardAPIVolumeFile{Path: "name", Mode: new(int32(0o400)), User: new(int64(5)), FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}
	mustShow(t, ofDownwardAPI(own), "name 0400 5 web")
}

func TestAnUnsupportedFieldIsAnError(t *testing.T) {
	mustFail(t, ofResource("side", "limits.cpu", ""), nil, "the pod has no container side, whose resources a volume is to project: name one that it has")
	mustFail(t, ofResource("main", "limits.cpu", "-1"), nil, "divisor -1 of resource cpu isn't above zero: choose another")
	mustFail(t, ofDownwardAPI(corev1.DownwardAPIVolumeFile{Path: "f"}), nil, "file f of a downwardAPI volume has neither fieldRef nor resourceFieldRef: give it one")
}
