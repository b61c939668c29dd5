package binder

import (
	"math/bits"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
)

// kind is all of a volume, or of what a claim asks for, that takes few values:
// what the index keeps apart, so that a search looks only at what may fit.
type kind struct {
	mode       corev1.PersistentVolumeMode
	access     accessModes
	attributes string
}

func kindOf(pv *corev1.PersistentVolume) kind {
	return kind{
		mode:       volumeMode(pv.Spec.VolumeMode),
		access:     accessModesOf(pv.Spec.AccessModes),
		attributes: ptr.Deref(pv.Spec.VolumeAttributesClassName, ""),
	}
}

func kindAskedBy(claim *corev1.PersistentVolumeClaim) kind {
	return kind{
		mode:       volumeMode(claim.Spec.VolumeMode),
		access:     accessModesOf(claim.Spec.AccessModes),
		attributes: ptr.Deref(claim.Spec.VolumeAttributesClassName, ""),
	}
}

// gives tells whether volumes of this kind can serve what is asked and, if not,
// the first cause.
func (k kind) gives(asked kind) Cause {
	switch {
	case k.mode != asked.mode:
		return OtherVolumeMode
	case k.access&asked.access != asked.access:
		return OtherAccessModes
	case k.attributes != asked.attributes:
		return OtherAttributesClass
	}
	return Fits
}

func volumeMode(mode *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	return ptr.Deref(mode, corev1.PersistentVolumeFilesystem)
}

// accessModes is a set of access modes, one bit each.
type accessModes uint8

var knownAccessModes = [...]corev1.PersistentVolumeAccessMode{
	corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod,
}

// unknownAccessMode stands for what the API server doesn't let pass today.
const unknownAccessMode accessModes = 1 << len(knownAccessModes)

func accessModesOf(modes []corev1.PersistentVolumeAccessMode) accessModes {
	var set accessModes
	for _, mode := range modes {
		set |= bitOf(mode)
	}
	return set
}

// count is how many there are.
func (m accessModes) count() int { return bits.OnesCount8(uint8(m)) }

func bitOf(mode corev1.PersistentVolumeAccessMode) accessModes {
	for i, known := range knownAccessModes {
		if mode == known {
			return 1 << i
		}
	}
	return unknownAccessMode
}

func classOf(pv *corev1.PersistentVolume) string { return volume.GetPersistentVolumeClass(pv) }
