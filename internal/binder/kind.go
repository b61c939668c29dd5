package binder

import (
	"math/bits"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
)

// kind is the part of a volume or a request that takes few values. The index is split by it,
// so that a search only visits volumes that may fit.
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

func requestedKind(claim *corev1.PersistentVolumeClaim) kind {
	return kind{
		mode:       volumeMode(claim.Spec.VolumeMode),
		access:     accessModesOf(claim.Spec.AccessModes),
		attributes: ptr.Deref(claim.Spec.VolumeAttributesClassName, ""),
	}
}

// mismatch returns the first cause why volumes of this kind do not serve a request, or Fits.
func (k kind) mismatch(requested kind) Cause {
	switch {
	case k.mode != requested.mode:
		return OtherVolumeMode
	case k.access&requested.access != requested.access:
		return OtherAccessModes
	case k.attributes != requested.attributes:
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

// unknownAccessMode stands for modes that the API server does not admit today.
const unknownAccessMode accessModes = 1 << len(knownAccessModes)

func accessModesOf(modes []corev1.PersistentVolumeAccessMode) accessModes {
	var set accessModes
	for _, mode := range modes {
		set |= bitOf(mode)
	}
	return set
}

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
