package backend

import "context"

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
