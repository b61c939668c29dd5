// Package wire has the words of CSI for those of the contract: parts of requests, and what the code of
// an answer means. It is pure; package csi makes the calls.
package wire

import (
	"fmt"
	"slices"
	"strings"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/backend"
)

// maxProblems bounds what is passed on of what is wrong with a volume.
const maxProblems = 10

// KindOf is what a code means for the caller of a call that changes something, as the CSI
// specification has it. "" is an unknown outcome: the call may have had its effect.
func KindOf(code codes.Code) backend.ErrorKind {
	switch code {
	case codes.Aborted, codes.DeadlineExceeded:
		// The driver works on this volume, or did when the caller stopped waiting.
		return backend.InProgress
	case codes.ResourceExhausted:
		return backend.Exhausted
	case codes.AlreadyExists:
		return backend.Conflict
	case codes.NotFound:
		return backend.NotFound
	case codes.InvalidArgument, codes.Unimplemented, codes.OutOfRange:
		return backend.Invalid
	case codes.PermissionDenied, codes.Unauthenticated, codes.FailedPrecondition:
		// It is not about the request: Google's driver answers so to the cloud's limit of requests. No
		// object that changes would wake the claim.
		return backend.Unavailable
	default:
		return ""
	}
}

// ContentSource is what a volume is filled from.
func ContentSource(source backend.Source) *csispec.VolumeContentSource {
	if source.Snapshot != "" {
		return &csispec.VolumeContentSource{Type: &csispec.VolumeContentSource_Snapshot{
			Snapshot: &csispec.VolumeContentSource_SnapshotSource{SnapshotId: source.Snapshot},
		}}
	}
	return &csispec.VolumeContentSource{Type: &csispec.VolumeContentSource_Volume{
		Volume: &csispec.VolumeContentSource_VolumeSource{VolumeId: source.ID},
	}}
}

// Capability is what a volume of a mode must support.
func Capability(
	mode csispec.VolumeCapability_AccessMode_Mode, volumeMode corev1.PersistentVolumeMode, fsType string, options []string,
) *csispec.VolumeCapability {
	made := &csispec.VolumeCapability{AccessMode: &csispec.VolumeCapability_AccessMode{Mode: mode}}
	if volumeMode == corev1.PersistentVolumeBlock {
		made.AccessType = &csispec.VolumeCapability_Block{Block: &csispec.VolumeCapability_BlockVolume{}}
		return made
	}
	made.AccessType = &csispec.VolumeCapability_Mount{Mount: &csispec.VolumeCapability_MountVolume{FsType: fsType, MountFlags: options}}
	return made
}

// AccessMode is CSI's name of an access mode. A driver that doesn't distinguish the writers of one
// node has one name for both of their modes.
func AccessMode(mode corev1.PersistentVolumeAccessMode, distinguishes bool) csispec.VolumeCapability_AccessMode_Mode {
	switch {
	case mode == corev1.ReadWriteMany:
		return csispec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	case mode == corev1.ReadOnlyMany:
		return csispec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	case mode == corev1.ReadWriteOncePod && distinguishes:
		return csispec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
	case distinguishes:
		return csispec.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
	default:
		return csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
	}
}

// PublishMode is the one access mode that stands for all of a volume.
func PublishMode(pv *corev1.PersistentVolume, distinguishes bool) (csispec.VolumeCapability_AccessMode_Mode, error) {
	has := func(mode corev1.PersistentVolumeAccessMode) bool { return slices.Contains(pv.Spec.AccessModes, mode) }
	switch {
	case has(corev1.ReadWriteMany):
		return AccessMode(corev1.ReadWriteMany, distinguishes), nil
	case has(corev1.ReadOnlyMany) && (has(corev1.ReadWriteOnce) || has(corev1.ReadWriteOncePod)):
		return 0, backend.Invalid.Errorf("volume %s has ReadOnlyMany and a mode that writes: CSI has no name for both, so remove one", pv.Name)
	case len(pv.Spec.AccessModes) == 0:
		return 0, backend.Invalid.Errorf("volume %s has no access mode", pv.Name)
	default:
		return AccessMode(pv.Spec.AccessModes[0], distinguishes), nil
	}
}

// Size is that of keys and values.
func Size(attributes map[string]string) (bytes int) {
	for key, value := range attributes {
		bytes += len(key) + len(value)
	}
	return bytes
}

// HealthText says what is wrong with a volume: "" for nothing.
func HealthText(health *csispec.VolumeHealth) string {
	var all []string
	for _, problem := range health.GetHealthStatuses() {
		if len(all) == maxProblems {
			break
		}
		all = append(all, strings.TrimSuffix(strings.TrimSpace(fmt.Sprintf("%s (%.100s): %.400s", problem.GetStatus(), problem.GetReason(), problem.GetMessage())), ":"))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}
