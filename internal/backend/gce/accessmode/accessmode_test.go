package accessmode

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/api/compute/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
)

func TestTheUseOfAClaimDecidesOnTheAccessModeOfItsDisk(t *testing.T) {
	const once, many, read = corev1.ReadWriteOnce, corev1.ReadWriteMany, corev1.ReadOnlyMany
	for name, test := range map[string]struct {
		diskType string
		modes    []corev1.PersistentVolumeAccessMode
		want     string
		problem  string
	}{
		"one writer":                            {"hyperdisk-balanced", []corev1.PersistentVolumeAccessMode{once, corev1.ReadWriteOncePod}, "", ""},
		"many writers":                          {"hyperdisk-balanced", []corev1.PersistentVolumeAccessMode{once, many}, cloud.WrittenByMany, ""},
		"many writers, or readers":              {"hyperdisk-balanced", []corev1.PersistentVolumeAccessMode{read, many}, cloud.WrittenByMany, ""},
		"readers":                               {"hyperdisk-ml", []corev1.PersistentVolumeAccessMode{read, read}, cloud.ReadByMany, ""},
		"a writer first, readers later":         {"hyperdisk-ml", []corev1.PersistentVolumeAccessMode{once, read}, "", "ask for ReadOnlyMany alone"},
		"one writer of a persistent disk":       {"pd-ssd", []corev1.PersistentVolumeAccessMode{once}, "", ""},
		"readers of a persistent disk":          {"pd-ssd", []corev1.PersistentVolumeAccessMode{read}, "", ""},
		"a persistent disk's writer and reader": {"pd-ssd", []corev1.PersistentVolumeAccessMode{once, read}, "", ""},
		"many writers of a persistent disk":     {"pd-ssd", []corev1.PersistentVolumeAccessMode{many}, "", "a disk of type pd-ssd can't be ReadWriteMany"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Of(test.diskType, test.modes)
			if got != test.want {
				t.Errorf("it is %q", got)
			}
			if test.problem == "" && err != nil || test.problem != "" && (!errors.Is(err, backend.Invalid) || !strings.Contains(err.Error(), test.problem)) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestARefusalNamesATypeThatHasTheAccessMode(t *testing.T) {
	for mode, hint := range map[string]string{cloud.WrittenByMany: "such as hyperdisk-balanced", cloud.ReadByMany: "hyperdisk-ml"} {
		err := WhyRefused(&compute.Disk{Type: "zones/z/diskTypes/hyperdisk-extreme", AccessMode: mode}, errors.New("no luck"))
		if !errors.Is(err, backend.Invalid) || !strings.Contains(err.Error(), "type hyperdisk-extreme with the access mode "+mode) ||
			!strings.Contains(err.Error(), hint) || !strings.Contains(err.Error(), "no luck") {
			t.Errorf("the error is %v", err)
		}
	}
}
