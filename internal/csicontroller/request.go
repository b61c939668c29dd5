package csicontroller

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/named"
)

const (
	// namespace of the claims in owner records. No Namespace can have a name with a dot: volumes and
	// snapshots of these claims are those of no tenant.
	namespace = "csi.volumes"
	// maxName is the length of a name in a call, in bytes, as the interface has it.
	maxName = 128
	// metadataPrefix begins the parameters that sidecars add about objects.
	metadataPrefix = "csi.storage.k8s.io/"
)

// accessModes are those of Kubernetes for those of the interface.
var accessModes = map[csispec.VolumeCapability_AccessMode_Mode]corev1.PersistentVolumeAccessMode{
	csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER:        corev1.ReadWriteOnce,
	csispec.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:  corev1.ReadWriteOnce,
	csispec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER: corev1.ReadWriteOncePod,
	csispec.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:   corev1.ReadOnlyMany,
	csispec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:    corev1.ReadOnlyMany,
	csispec.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER:  corev1.ReadWriteMany,
	csispec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:   corev1.ReadWriteMany,
}

func checkName(name string) error {
	switch {
	case name == "":
		return missing("name")
	case len(name) > maxName:
		return status.Errorf(codes.InvalidArgument, "name has %d bytes: at most %d are allowed", len(name), maxName)
	}
	return nil
}

// requestOf is what a call asks a backend for, without a source.
func (s *Service) requestOf(b storage, req *csispec.CreateVolumeRequest) (request backend.Request, err error) {
	uid := named.UID(s.Cluster, s.Name, "volume", req.GetName())
	request = backend.Request{
		ID:         backend.VolumeID(uid, 1),
		Capacity:   *resource.NewQuantity(max(req.GetCapacityRange().GetRequiredBytes(), 1), resource.BinarySI),
		Topologies: topologies(req.GetAccessibilityRequirements()),
	}
	if limit := req.GetCapacityRange().GetLimitBytes(); limit > 0 && request.Capacity.Value() > limit {
		return request, status.Error(codes.OutOfRange, "capacity_range: more is required than the limit")
	}
	use, err := useOf(req.GetVolumeCapabilities())
	if err != nil {
		return request, err
	}
	request.VolumeMode, request.AccessModes, request.MountOptions = use.mode, use.access, use.options
	parameters, err := s.parametersOf(b, req.GetParameters())
	if err != nil {
		return request, err
	}
	if use.fsType != "" && parameters.FSType != "" && use.fsType != parameters.FSType {
		return request, status.Errorf(codes.InvalidArgument, "fs_type is %.100q, and parameter %q is %.100q: a volume has one file system",
			use.fsType, stowagev1alpha1.FSTypeParameter, parameters.FSType)
	}
	request.Parameters, request.FSType = parameters.Storage, cmp.Or(use.fsType, parameters.FSType)
	if use.mode == corev1.PersistentVolumeBlock {
		request.FSType = ""
	}
	if request.Attributes, err = attributesOf(b, req.GetMutableParameters()); err != nil {
		return request, err
	}
	request.Claim = stowagev1alpha1.ClaimReference{Namespace: namespace, Name: digest(b, request, req), UID: uid}
	return request, nil
}

// parametersOf reads those of a class, without what sidecars add.
func (s *Service) parametersOf(b storage, given map[string]string) (backend.Parameters, error) {
	parameters, err := backend.ParseClass(b.object, withoutMetadata(given))
	if err == nil && parameters.Backend != s.Name {
		err = backend.Invalid.Errorf("this socket serves StorageBackend %s, and parameter %q names another one: %s", s.Name, stowagev1alpha1.BackendParameter, parameters.Backend)
	}
	return parameters, err
}

func withoutMetadata(given map[string]string) map[string]string {
	kept := maps.Clone(given)
	maps.DeleteFunc(kept, func(name, _ string) bool {
		return strings.HasPrefix(name, metadataPrefix) && name != stowagev1alpha1.FSTypeParameter
	})
	return kept
}

// attributesOf are those of a class with these parameters; nil for none.
func attributesOf(b storage, parameters map[string]string) (*backend.Attributes, error) {
	if len(parameters) == 0 {
		return nil, nil //nolint:nilnil // none are asked for
	}
	if !backend.HasAttributes(b.object) {
		return nil, backend.Invalid.Errorf("volumes of StorageBackend %s have no mutable_parameters", b.object.Name)
	}
	return &backend.Attributes{Class: "mutable_parameters", Parameters: parameters}, nil
}

// digest identifies a name, and what its volume is made as. It is the name of the claim in the owner record: a call with the
// same name that asks for something else finds the volume of another claim, which is a Conflict.
func digest(b storage, request backend.Request, req *csispec.CreateVolumeRequest) string {
	asked := []any{
		req.GetName(), req.GetCapacityRange().GetLimitBytes(), request.VolumeMode, request.AccessModes, request.FSType, request.Parameters,
		req.GetVolumeContentSource().GetVolume().GetVolumeId(), req.GetVolumeContentSource().GetSnapshot().GetSnapshotId(),
	}
	if b.Capabilities().Advisory {
		// Such a volume has what each call asks for: the record alone shows with what it was made.
		asked = append(asked, request.Capacity.Value())
	}
	text, err := json.Marshal(asked)
	if err != nil {
		panic(err) // texts only
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// use is how a volume is to be used.
type use struct {
	mode    corev1.PersistentVolumeMode
	access  []corev1.PersistentVolumeAccessMode
	fsType  string
	options []string
}

// useOf is what capabilities come to, in an order of its own.
func useOf(capabilities []*csispec.VolumeCapability) (of use, err error) {
	if len(capabilities) == 0 {
		return use{}, missing("volume_capabilities")
	}
	of.mode = modeOf(capabilities[0])
	for _, one := range capabilities {
		access, known := accessModes[one.GetAccessMode().GetMode()]
		switch {
		case !known:
			return use{}, status.Errorf(codes.InvalidArgument, "access_mode %s is none that Kubernetes has", one.GetAccessMode().GetMode())
		case one.GetAccessType() == nil:
			return use{}, missing("access_type")
		case modeOf(one) != of.mode:
			return use{}, status.Error(codes.InvalidArgument, "volume_capabilities: a volume is either mounted or a device")
		case one.GetMount().GetFsType() != capabilities[0].GetMount().GetFsType():
			return use{}, status.Error(codes.InvalidArgument, "volume_capabilities: a volume has one file system")
		}
		of.access = append(of.access, access)
		of.options = append(of.options, one.GetMount().GetMountFlags()...)
	}
	of.fsType = capabilities[0].GetMount().GetFsType()
	slices.Sort(of.access)
	of.access = slices.Compact(of.access)
	return of, nil
}

func modeOf(capability *csispec.VolumeCapability) corev1.PersistentVolumeMode {
	if capability.GetBlock() != nil {
		return corev1.PersistentVolumeBlock
	}
	return corev1.PersistentVolumeFilesystem
}

// topologies are the terms of a class that allows what is required, the preferred first.
func topologies(required *csispec.TopologyRequirement) (terms []corev1.TopologySelectorTerm) {
	for _, one := range slices.Concat(required.GetPreferred(), required.GetRequisite()) {
		var term corev1.TopologySelectorTerm
		for _, label := range slices.Sorted(maps.Keys(one.GetSegments())) {
			term.MatchLabelExpressions = append(term.MatchLabelExpressions,
				corev1.TopologySelectorLabelRequirement{Key: label, Values: []string{one.GetSegments()[label]}})
		}
		terms = append(terms, term)
	}
	return terms
}

// accessible is where a volume can be used: one place for each value of a label, as segments have one.
func accessible(made *backend.Volume) (places []*csispec.Topology) {
	if made.NodeAffinity == nil {
		return nil
	}
	for _, term := range made.NodeAffinity.Required.NodeSelectorTerms {
		within := []map[string]string{{}}
		for _, expression := range term.MatchExpressions {
			within = withLabel(within, expression)
		}
		for _, segments := range within {
			places = append(places, &csispec.Topology{Segments: segments})
		}
	}
	return places
}

// withLabel are places with each of a label's values.
func withLabel(places []map[string]string, expression corev1.NodeSelectorRequirement) (all []map[string]string) {
	for _, place := range places {
		for _, value := range expression.Values {
			with := maps.Clone(place)
			with[expression.Key] = value
			all = append(all, with)
		}
	}
	return all
}
