package mounting

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/stowage-dev/stowage/internal/mount"
)

var optionText = regexp.MustCompile(`^[A-Za-z0-9_.=-]+$`)

// known are the options of each type of file system that a volume may have. None names another
// device, makes an error stop the node, or discards blocks: that would free room which an image
// has reserved.
var known = map[string][]string{
	"ext4": {
		"acl", "noacl", "user_xattr", "nouser_xattr", "barrier", "nobarrier", "nodiscard",
		"lazytime", "nolazytime", "sync", "dirsync", "async", "data=ordered", "data=journal", "data=writeback",
		"errors=continue", "errors=remount-ro", "commit=", "stripe=", "init_itable=", "noinit_itable",
	},
	"xfs": {
		"inode64", "largeio", "nolargeio", "swalloc", "nouuid", "noquota", "nodiscard",
		"lazytime", "nolazytime", "sync", "dirsync", "async", "allocsize=", "logbsize=", "logbufs=",
	},
}

// always are the defaults for what a volume's options don't set. After an error, nothing more is
// written to a file system. A clone, which has the UUID of its origin, can be mounted beside it.
var always = map[string][]mount.Setting{
	"ext4": {{Key: "errors", Value: "remount-ro"}},
	"xfs":  {{Key: "nouuid"}},
}

// ignored are options of mount(8), which the agent doesn't run.
var ignored = []string{"defaults", "rw", "auto", "noauto", "nofail", "nouser", "_netdev"}

// SetOptions applies a volume's mount options, or returns which one isn't served.
func SetOptions(system *mount.FileSystem, options []string) error {
	if _, served := known[system.Type]; !served {
		return fmt.Errorf("the volume holds %s, and only ext4 and xfs are mounted: it is never formatted, because that is data", system.Type)
	}
	for _, option := range options {
		if err := setOption(system, option); err != nil {
			return err
		}
	}
	for _, setting := range always[system.Type] {
		isSet := slices.ContainsFunc(system.Settings, func(other mount.Setting) bool { return other.Key == setting.Key })
		if !isSet {
			system.Settings = append(system.Settings, setting)
		}
	}
	return nil
}

func setOption(system *mount.FileSystem, option string) error {
	if !optionText.MatchString(option) {
		return fmt.Errorf("%q is not one mount option: give each of the volume's mountOptions on its own, of letters, digits and _ . = - only", option)
	}
	attributes, isAttribute := mount.SetAttribute(system.Attributes, option)
	key, value, _ := strings.Cut(option, "=")
	switch {
	case option == "ro":
		system.Access = mount.ReadOnly
	case isAttribute:
		system.Attributes = attributes
	case slices.Contains(known[system.Type], option) || value != "" && slices.Contains(known[system.Type], key+"="):
		system.Settings = append(system.Settings, mount.Setting{Key: key, Value: value})
	case slices.Contains(ignored, option):
	default:
		return fmt.Errorf("mount option %q isn't served for %s: take it out of the volume's mountOptions, or those of its StorageBackend and StorageClass", option, system.Type)
	}
	return nil
}
