package backend

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// Attributes are what a VolumeAttributesClass says of a volume. The storage can change them while
// the volume exists.
type Attributes struct {
	// Class and UID identify the VolumeAttributesClass. Its parameters are immutable.
	Class string
	UID   types.UID
	// Parameters, which only the storage understands.
	Parameters map[string]string
}

// Modifier is a backend whose volumes can get other attributes while they exist.
type Modifier interface {
	// Modify gives the volume with this id these attributes. A repeat has the same outcome. The
	// caller repeats the call after any error with an unknown outcome, also after a crash, and asks
	// for no other attributes before. An error of kind
	//   InProgress   says that work goes on and that the call is to be repeated;
	//   Invalid      says that the volume can't have these attributes;
	//   NotFound     says that there is no such volume;
	//   Conflict     says that the volume isn't this backend's;
	//   NotReady     says that the storage refused, and that a repeat may help;
	//   Unavailable  says that the storage didn't take the call: an earlier one may go on.
	// After an error of no kind, or of kind InProgress, the volume may have the attributes, or
	// some of them, or may still get them. After the others, but Unavailable, nothing goes on.
	Modify(ctx context.Context, id string, attributes Attributes) error
}

// Modify changes a volume of a backend; one that isn't a Modifier answers Invalid.
func Modify(ctx context.Context, b Backend, id string, attributes Attributes) error {
	modifier, can := As[Modifier](b)
	if !can {
		return Invalid.Errorf("volume %s is of a kind that has no attributes to change", id)
	}
	return modifier.Modify(ctx, id, attributes)
}
