package backend

import (
	"context"
	"crypto/sha256"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Inspector is a backend that can't list which volumes are this cluster's, and says of volumes that the
// caller names whether they are there, and whether they are well (csi).
type Inspector interface {
	// Inspect returns what the storage says of the volumes with these ids. It changes nothing.
	Inspect(ctx context.Context, ids []string) (Inspection, error)
}

// Inspection is what the storage says of volumes.
type Inspection struct {
	// FindsMissing reports whether the storage can say that a volume is missing.
	FindsMissing bool
	// Missing has the ids of volumes that the storage doesn't have. It may have some of them again,
	// or a list was late: the caller compares two.
	Missing map[string]bool
	// Health has, by id, what is wrong with volumes, for people: "" for nothing. A volume of which the
	// storage says nothing is absent.
	Health map[string]string
}

// Validator is a backend that can say whether a volume is there, and can be used as the object says that
// a person made for it (csi).
type Validator interface {
	// Validate returns an error of kind Invalid where pods can't use the volume as its object says, and of
	// kind NotFound where there is no such volume. Another error says nothing about the volume. It changes
	// nothing.
	Validate(ctx context.Context, volume *corev1.PersistentVolume) error
}

// Validate asks a backend about a volume object; one that isn't a Validator has no objection.
func Validate(ctx context.Context, b Backend, volume *corev1.PersistentVolume) error {
	validator, can := As[Validator](b)
	if !can {
		return nil
	}
	return validator.Validate(ctx, volume)
}

// PromiseOf identifies what an object says of its volume: the answer of Validate depends on it.
func PromiseOf(volume *corev1.PersistentVolume) string {
	said := fmt.Sprintf("%s %v %s %q %s", volume.UID, volume.Spec.AccessModes, ptr.Deref(volume.Spec.VolumeMode, ""), volume.Spec.MountOptions, volume.Spec.CSI)
	sum := sha256.Sum256([]byte(said))
	return string(sum[:])
}
