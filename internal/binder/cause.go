package binder

// Cause is why a claim does not get a volume.
type Cause string

// Causes, in the order of the checks; Fits is the absence of one.
const (
	Fits                 Cause = ""
	Deleting             Cause = "being deleted"
	Failed               Cause = "failed"
	Reserved             Cause = "reserved"
	BeingBound           Cause = "being bound to another claim"
	OtherVolumeMode      Cause = "other volumeMode"
	OtherAccessModes     Cause = "other access modes"
	OtherAttributesClass Cause = "other volumeAttributesClass"
	OtherClass           Cause = "other class"
	OtherLabels          Cause = "not selected by the claim"
	TooSmall             Cause = "too small"
	OtherNode            Cause = "not usable on the pod's node"
)
