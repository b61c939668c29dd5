package backend

// ExistingAttacher is an Attacher that can also attach disks that somebody else made.
type ExistingAttacher interface {
	// Existing attaches and detaches disks by their full path, such as
	// projects/demo/zones/europe-west3-a/disks/data, which is their id. Nothing else
	// can be done to them: none is made, grown, labelled, listed or removed, and what is
	// attached in another way than by this is left alone. An error of kind
	//   Invalid      says also that the backend isn't for existing disks;
	//   Conflict     says also that the disk is one of a volume of Stowage's.
	// Detach does its work, too, where Attach isn't allowed any more.
	Existing() Attacher
}
