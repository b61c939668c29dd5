// Package backend is the contract between the reconcilers, which decide when storage is made and
// removed, and the kinds of storage, which know how.
//
// The contract is small. Backend makes and removes volumes. Abilities that not every kind of
// storage has are interfaces of one or two methods, found by type assertion. The ErrorKind says
// what an error means, never its text. Every implementation passes the contract suite in
// backendtest.
package backend

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// Backend makes and removes the volumes of one StorageBackend object.
// All methods can be called by several goroutines at once.
type Backend interface {
	// Capabilities are constant.
	Capabilities() Capabilities

	// Provision makes the volume with the id in the request, or finds it made. A repeat with the
	// same request has the same outcome. So the caller repeats it after any error with an unknown
	// outcome, also after a crash. An error of kind
	//   InProgress   says that work goes on and that the call is to be repeated;
	//   Exhausted    says that there is no room now; nothing holds data;
	//   WrongNode    says that the request's node is none of the backend's;
	//   Conflict     says that the id is another claim's;
	//   Invalid      says that no repeat helps until something is changed;
	//   Unavailable  says that the storage didn't take the call.
	// After an error of no kind, or of kind InProgress, the volume may exist or may still be made.
	Provision(ctx context.Context, request Request) (*Volume, error)

	// Delete removes the volume with this id and its data, for ever. It removes no volume with an
	// owner record that doesn't fit the id. A volume that doesn't exist is no error. InProgress says
	// that removal goes on, or waits until the volume isn't used any more, and that the call is to
	// be repeated until it returns nil.
	Delete(ctx context.Context, id string) error
}

// Prober is a backend that can check whether its storage answers.
type Prober interface {
	// Probe returns nil where new volumes can be made, else an error with advice for an
	// administrator. The kind is Invalid where the spec has to be changed, Unavailable where the
	// storage has to come back.
	Probe(ctx context.Context) error
}

// Capabilities are what a backend can make.
type Capabilities struct {
	// AccessModes that its volumes can have.
	AccessModes []corev1.PersistentVolumeAccessMode
	// OnlyBlock are those of the access modes that volumes can have as block devices only.
	OnlyBlock []corev1.PersistentVolumeAccessMode
	// VolumeModes that its volumes can have.
	VolumeModes []corev1.PersistentVolumeMode
	// FSTypes are the file systems that a StorageClass can choose for its volumes. Empty:
	// there is nothing to choose.
	FSTypes []string
	// Advisory is true where a volume may grow beyond its capacity: the number
	// is a label, not a limit.
	Advisory bool
	// Clones is true where a volume can begin as a copy of another of the backend.
	Clones bool
	// Restores is true where a volume can begin with the content of a snapshot of the backend.
	Restores bool
	// InPlace is true where a copy, or what is restored, lies on the node of its source: no pod has to
	// choose a node for it.
	InPlace bool
}

// Request asks for one volume.
type Request struct {
	// ID of the volume, made by VolumeID.
	ID string
	// Claim that the volume is for: the owner's record.
	Claim stowagev1alpha1.ClaimReference
	// Labels and Annotations of the claim. Users write and change them: a repeat of the call doesn't
	// depend on them.
	Labels, Annotations map[string]string
	// Capacity is the least that the volume must have, in bytes.
	Capacity resource.Quantity
	// VolumeMode is Filesystem or Block.
	VolumeMode corev1.PersistentVolumeMode
	// AccessModes that the volume must support.
	AccessModes []corev1.PersistentVolumeAccessMode
	// FSType is the file system that the volume's class names; a device has none. Empty: the
	// backend's own.
	FSType string
	// Node of the pod that waits for the volume. Nil: the backend chooses.
	Node *corev1.Node
	// Topologies that the volume's class allows: a backend that chooses a node chooses within them.
	Topologies []corev1.TopologySelectorTerm
	// Placement is what Place chose before the first call with this id. Nil: there is no record of it.
	Placement *Placement
	// Parameters of the volume's class that only the storage understands (csi and gce).
	Parameters map[string]string
	// Attributes are those of the claim's VolumeAttributesClass (csi and gce). Nil: it names none.
	Attributes *Attributes
	// MountOptions of the volume's class.
	MountOptions []string
	// Source is the volume or snapshot of this backend of which the new one is a copy. Nil: it is empty.
	Source *Source
	// Unwanted: the volume is removed as soon as no earlier call can take effect any more. A backend
	// with a Delete that ends work in progress returns Invalid at once; others continue the work.
	Unwanted bool
}

// Placement is where a volume may be. In storage whose names are unique in one place only, a repeat of
// Provision with another placement may make a second volume.
type Placement struct {
	// Requisite are the places: labels that nodes have. Empty: the storage chooses.
	Requisite []map[string]string `json:"requisite,omitempty"`
	// First is the index of the one that is preferred.
	First int `json:"first,omitempty"`
}

// Source is the volume, or the snapshot, of which another volume is a copy.
type Source struct {
	// ID of the volume in the backend. Empty in a repeat after the volume may be gone. Then the
	// backend finds a copy that an earlier call began, and begins none, which is Invalid.
	ID string
	// Claim that the volume is bound to.
	Claim stowagev1alpha1.ClaimReference
	// Namespace of the source, where that isn't the new claim's own. The caller has seen that it lets the claim have a copy.
	Namespace string
	// Snapshot is the handle of a snapshot of the backend, in place of a volume: then ID and Claim are
	// empty. A snapshot that is gone is Invalid, unless an earlier call began the copy.
	Snapshot string
	// Given: an administrator's VolumeSnapshotContent gives the snapshot to the namespace of its VolumeSnapshot. The volume
	// that it is of may have been another namespace's.
	Given bool
	// AnyMode: an administrator lets the snapshot be restored with another volumeMode than its volume has.
	AnyMode bool
}

// SourceNamespace is the namespace in which the source of a request belongs to a claim, or belonged.
func (r Request) SourceNamespace() string {
	if r.Source == nil || r.Source.Namespace == "" {
		return r.Claim.Namespace
	}
	return r.Source.Namespace
}

// IsUnknown reports whether a repeat may have to do without its source.
func (s Source) IsUnknown() bool { return s.ID == "" && s.Snapshot == "" }

// Volume is the outcome of Provision: what goes into the PersistentVolume.
type Volume struct {
	// Handle identifies the volume for the node side.
	Handle string
	// Attributes are all that the node needs to mount the volume; the caller adds the name of the
	// StorageBackend.
	Attributes map[string]string
	// Capacity that the volume has, in bytes.
	Capacity resource.Quantity
	// FSType is the file system on the volume; empty where there is none to name.
	FSType string
	// NodeAffinity restricts the nodes that can use the volume. Nil: all can.
	NodeAffinity *corev1.VolumeNodeAffinity
}

// VolumeID is the id of a claim's volume. It is always computed from the claim's UID, never read
// from what users can write. Attempts count from 1: a further one is for storage that can't use
// an id again after its volume was removed.
func VolumeID(claim types.UID, attempt int) string {
	if attempt <= 1 {
		return "pvc-" + string(claim)
	}
	return fmt.Sprintf("pvc-%s-%d", claim, attempt)
}

// IsVolumeID reports whether an id is that of a claim's first attempt, or of a later one.
func IsVolumeID(id string, claim types.UID) bool {
	rest, fits := strings.CutPrefix(id, VolumeID(claim, 1))
	attempt, later := strings.CutPrefix(rest, "-")
	return fits && (rest == "" || later && attempt != "" && strings.Trim(attempt, "0123456789") == "")
}

// Owner is the part of a record that names the owner of a volume.
type Owner struct {
	ID string `json:"id"`
	// Cluster is the identity of the cluster: several may use one project, or one share.
	Cluster string                         `json:"cluster"`
	Backend string                         `json:"backend"`
	Claim   stowagev1alpha1.ClaimReference `json:"claim"`
}

// CheckOwner returns an error of kind Conflict where the record of a volume is not that of this
// backend of this cluster, and where the record does not fit its id. The volume is what messages
// call it. Others may have written the record: messages quote it, and shorten it.
func (o Owner) CheckOwner(volume, cluster, backend string) error {
	switch {
	case o.Cluster != cluster:
		return Conflict.Errorf("%s belongs to another cluster, with the id %.200q: it is left alone", volume, o.Cluster)
	case o.Backend != backend:
		return Conflict.Errorf("%s belongs to backend %.200q: it is left alone", volume, o.Backend)
	case !IsVolumeID(o.ID, o.Claim.UID):
		return Conflict.Errorf("%s is recorded as that of the claim with uid %.200q, which doesn't fit: it is left alone", volume, o.Claim.UID)
	}
	return nil
}

// CheckClaim returns an error of kind Conflict where a request's id is not one of its claim, or the
// storage doesn't take its form. The kind is Invalid where no capacity is requested.
func (r Request) CheckClaim(form *regexp.Regexp) error {
	switch {
	case !form.MatchString(r.ID) || !IsVolumeID(r.ID, r.Claim.UID):
		return Conflict.Errorf("the id %q isn't that of a volume of the claim with uid %s", r.ID, r.Claim.UID)
	case r.Capacity.Sign() <= 0:
		return Invalid.Errorf("the claim asks for %s: ask for more than nothing", r.Capacity.String())
	}
	return nil
}

// Check returns an error of kind Invalid, in words for the claim's owner, where a request exceeds
// these capabilities.
func (c Capabilities) Check(request Request) error {
	if err := c.CheckUse(request.AccessModes, request.VolumeMode); err != nil {
		return err
	}
	if err := checkCapacity(request.Capacity); err != nil {
		return err
	}
	if request.FSType != "" && !slices.Contains(c.FSTypes, request.FSType) {
		return c.refuseFSType(request.FSType)
	}
	return c.checkSource(request.Source)
}

// CheckUse returns an error of kind Invalid where no volume here can be used in one of these ways.
func (c Capabilities) CheckUse(accessModes []corev1.PersistentVolumeAccessMode, volumeMode corev1.PersistentVolumeMode) error {
	for _, mode := range accessModes {
		if !slices.Contains(c.AccessModes, mode) {
			return Invalid.Errorf("access mode %s is not supported here: ask for one of %v", mode, c.AccessModes)
		}
		if volumeMode != corev1.PersistentVolumeBlock && slices.Contains(c.OnlyBlock, mode) {
			return Invalid.Errorf("access mode %s is for block devices only: ask for volumeMode %s, or for another access mode", mode, corev1.PersistentVolumeBlock)
		}
	}
	if !slices.Contains(c.VolumeModes, volumeMode) {
		return Invalid.Errorf("volumeMode %s is not supported here: ask for %v", volumeMode, c.VolumeModes)
	}
	return nil
}

func (c Capabilities) checkSource(source *Source) error {
	switch {
	case source == nil:
		return nil
	case source.Snapshot != "" && !c.Restores:
		return Invalid.Errorf("a volume can't be restored from a snapshot here: create the claim without dataSource, and copy the data")
	case source.Snapshot == "" && !c.Clones:
		return Invalid.Errorf("a volume can't be made as a copy of another here: create the claim without dataSource, and copy the data")
	}
	return nil
}

func (c Capabilities) refuseFSType(fsType string) error {
	if len(c.FSTypes) == 0 {
		return Invalid.Errorf("volumes have no file system of their own here: use a StorageClass without the parameter %s", stowagev1alpha1.FSTypeParameter)
	}
	return Invalid.Errorf("the file system %q is not supported here: use a StorageClass whose parameter %s is one of %v",
		fsType, stowagev1alpha1.FSTypeParameter, c.FSTypes)
}

// maxCapacity is the largest capacity that can be counted in bytes.
var maxCapacity = *resource.NewQuantity(math.MaxInt64, resource.BinarySI)

// checkCapacity refuses a capacity beyond int64, which Quantity.Value makes 0: a backend would make
// the smallest possible volume.
func checkCapacity(capacity resource.Quantity) error {
	if capacity.Cmp(maxCapacity) > 0 {
		return Invalid.Errorf("no volume has %s: ask for less than 8Ei", capacity.String())
	}
	return nil
}
