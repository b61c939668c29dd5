package gcedriver_test

import (
	"strings"
)

// failure is a spec that fails because of the driver itself.
type failure struct {
	// subject is the kind of disk; empty: all.
	subject string
	// spec is how its name ends, and message a part of what it says.
	spec, message string
	why           string
}

// failures are the specs that the driver fails with any cloud.
var failures = []failure{
	{
		spec: "CreateVolume should not fail when creating volume with maximum-length name", message: "resource.name",
		why: "a disk's name has 63 characters at most, and the driver names it as its volume",
	},
	{
		spec: "CreateSnapshot [Controller Server] should succeed when creating snapshot with maximum-length name", message: "resource.name",
		why: "a snapshot's name has 63 characters at most, and the driver takes the name as it is",
	},
	{
		subject: "pd-balanced", spec: "should modify a volume created with a volume attribute class", message: notModifiable,
		why: "persistent disks cannot be modified, though the driver claims MODIFY_VOLUME",
	},
	{
		subject: "pd-balanced", spec: "should modify a volume created without a volume attribute class", message: notModifiable,
		why: "persistent disks cannot be modified, though the driver claims MODIFY_VOLUME",
	},
	{
		subject: "regional-pd", spec: "should modify a volume created with a volume attribute class", message: notModifiable,
		why: "persistent disks cannot be modified, though the driver claims MODIFY_VOLUME",
	},
	{
		subject: "regional-pd", spec: "should modify a volume created without a volume attribute class", message: notModifiable,
		why: "persistent disks cannot be modified, though the driver claims MODIFY_VOLUME",
	},
}

// notModifiable is what the driver says of persistent disks.
const notModifiable = "modifications not supported for disk type pd-balanced"

// skips are what csi-sanity says of specs that it skips, and why that is right.
var skips = map[string]string{
	"GetCapacity not supported":                        "the driver does not claim GET_CAPACITY",
	"GetSnapshot not supported":                        "the driver does not claim GET_SNAPSHOT",
	"ControllerGetVolumeHealth not supported":          "the driver does not claim GET_VOLUME_HEALTH",
	"ControllerListVolumeHealth not supported":         "the driver does not claim LIST_VOLUME_HEALTH",
	"SNAPSHOT_ACCESSIBILITY_CONSTRAINTS not supported": "the driver does not claim it",
	"testnodevolumeattachlimit not enabled":            "it takes 127 disks; internal/gcemock tests the limit itself",
}

func knownFailure(subject string, one spec) (why string) {
	for _, known := range failures {
		if known.isOf(subject, one.Name) && one.State == "failed" && strings.Contains(one.Why, known.message) {
			return known.why
		}
	}
	return ""
}

func isListed(subject, spec string) bool {
	for _, known := range failures {
		if known.isOf(subject, spec) {
			return true
		}
	}
	return false
}

func (f failure) isOf(subject, spec string) bool {
	return (f.subject == "" || f.subject == subject) && strings.HasSuffix(spec, f.spec)
}
