package sanity_test

import (
	"maps"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// namespace is that of the claims which volumes are made for.
const namespace = "sanity"

// modes are the access modes of Kubernetes for those of CSI.
var modes = map[csi.VolumeCapability_AccessMode_Mode]corev1.PersistentVolumeAccessMode{
	csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER:        corev1.ReadWriteOnce,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:  corev1.ReadWriteOnce,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER: corev1.ReadWriteOncePod,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:   corev1.ReadOnlyMany,
	csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:    corev1.ReadOnlyMany,
	csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER:  corev1.ReadWriteMany,
	csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:   corev1.ReadWriteMany,
}

// claimOf is the UID of the claim that a name stands for: another one once its volume was
// deleted, as claims have.
func (s *controller) claimOf(name string) types.UID {
	if s.claims[name] == "" {
		s.claims[name] = types.UID(uuid.NewString())
	}
	return s.claims[name]
}

// requestOf is what a call asks the backend for: the volume of a claim that there would
// be.
func (s *controller) requestOf(req *csi.CreateVolumeRequest) (backend.Request, error) {
	if req.GetName() == "" {
		return backend.Request{}, missing("name")
	}
	uid := s.claimOf(req.GetName())
	if s.ClaimOf != nil {
		uid = s.ClaimOf(req.GetName())
	}
	request := backend.Request{
		ID:         backend.VolumeID(uid, 1),
		Claim:      stowagev1alpha1.ClaimReference{Namespace: namespace, Name: "claim-" + string(uid), UID: uid},
		Capacity:   *resource.NewQuantity(req.GetCapacityRange().GetRequiredBytes(), resource.BinarySI),
		Topologies: topologies(req.GetAccessibilityRequirements()),
	}
	if limit := req.GetCapacityRange().GetLimitBytes(); limit > 0 && request.Capacity.Value() > limit {
		return backend.Request{}, status.Error(codes.OutOfRange, "capacity_range: more is required than the limit")
	}
	var err error
	request.VolumeMode, request.AccessModes, err = modesOf(req.GetVolumeCapabilities())
	return request, err
}

// modesOf are the volume mode and the access modes that capabilities come to.
func modesOf(req []*csi.VolumeCapability) (corev1.PersistentVolumeMode, []corev1.PersistentVolumeAccessMode, error) {
	if len(req) == 0 {
		return "", nil, missing("volume_capabilities")
	}
	mode, access := volumeMode(req[0]), []corev1.PersistentVolumeAccessMode{}
	for _, one := range req {
		translated, known := modes[one.GetAccessMode().GetMode()]
		switch {
		case !known:
			return "", nil, status.Errorf(codes.InvalidArgument, "access_mode %s is none that Kubernetes has", one.GetAccessMode().GetMode())
		case one.GetAccessType() == nil:
			return "", nil, missing("access_type")
		case volumeMode(one) != mode:
			return "", nil, status.Error(codes.InvalidArgument, "a volume is either mounted or a device")
		case !slices.Contains(access, translated):
			access = append(access, translated)
		}
	}
	return mode, access, nil
}

func volumeMode(req *csi.VolumeCapability) corev1.PersistentVolumeMode {
	if req.GetBlock() != nil {
		return corev1.PersistentVolumeBlock
	}
	return corev1.PersistentVolumeFilesystem
}

// topologies are the terms of a class that allows what is required, the preferred first.
func topologies(required *csi.TopologyRequirement) (terms []corev1.TopologySelectorTerm) {
	for _, one := range append(slices.Clone(required.GetPreferred()), required.GetRequisite()...) {
		var term corev1.TopologySelectorTerm
		for _, label := range slices.Sorted(maps.Keys(one.GetSegments())) {
			term.MatchLabelExpressions = append(term.MatchLabelExpressions,
				corev1.TopologySelectorLabelRequirement{Key: label, Values: []string{one.GetSegments()[label]}})
		}
		terms = append(terms, term)
	}
	return terms
}

// accessible is where a volume can be used, in the words of CSI.
func accessible(made *backend.Volume) (places []*csi.Topology) {
	if made.NodeAffinity == nil {
		return nil
	}
	for _, term := range made.NodeAffinity.Required.NodeSelectorTerms {
		place := &csi.Topology{Segments: map[string]string{}}
		for _, expression := range term.MatchExpressions {
			place.Segments[expression.Key] = expression.Values[0]
		}
		places = append(places, place)
	}
	return places
}

// toStatus is what an error of a backend means in CSI. One of no kind is Internal: its
// outcome isn't known, and the call is repeated.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, already := status.FromError(err); already {
		return err
	}
	code, known := map[backend.ErrorKind]codes.Code{
		backend.NotFound: codes.NotFound,
		backend.Invalid:  codes.InvalidArgument,
		// A node that can't have the volume, or that there isn't.
		backend.WrongNode:   codes.NotFound,
		backend.Exhausted:   codes.ResourceExhausted,
		backend.Conflict:    codes.AlreadyExists,
		backend.Queued:      codes.Aborted,
		backend.InProgress:  codes.Aborted,
		backend.Unavailable: codes.Unavailable,
	}[backend.KindOf(err)]
	if !known {
		code = codes.Internal
	}
	return status.Error(code, err.Error())
}

func missing(field string) error {
	return status.Errorf(codes.InvalidArgument, "%s is missing", field)
}
