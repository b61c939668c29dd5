package nfs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/stowage-dev/stowage/internal/mount"
)

var (
	optionText = regexp.MustCompile(`^[A-Za-z0-9_.:=/@%+-]+$`)
	version    = regexp.MustCompile(`^(3|4|4\.[012])$`)
)

// valued are the options of NFS that have a value, and plain those without. Options with the
// server's address are not among them.
var (
	valued = words("acdirmax acdirmin acregmax acregmin actimeo bsize local_lock lookupcache max_connect mountport mountproto " +
		"mountvers nconnect port proto retrans rsize sec timeo wsize write xprtsec")
	plain = words("ac acl cto fsc hard intr lock migration noac noacl nocto nofsc nointr nolock nomigration nordirplus noresvport " +
		"nosharecache rdirplus resvport sharecache soft softerr softreval nosoftreval posix noposix sync async dirsync lazytime")
	// ignored is for mount(8), which isn't used.
	ignored = words("_netdev auto bg defaults fg noauto nofail nouser rw")
)

// setOptions applies mount options.
func (s *Share) setOptions(options []string) error {
	for _, option := range options {
		if err := s.setOption(option); err != nil {
			return err
		}
	}
	shared := slices.ContainsFunc(s.Settings, func(setting mount.Setting) bool { return strings.HasSuffix(setting.Key, "sharecache") })
	if !shared {
		// A forced unmount fails running calls on all mounts that share a cache: those of other
		// volumes, too.
		s.Settings = append(s.Settings, mount.Setting{Key: "nosharecache"})
	}
	return nil
}

func (s *Share) setOption(option string) error {
	if !optionText.MatchString(option) {
		return fmt.Errorf("%q is not one mount option: give each of the volume's mountOptions on its own, of letters, digits and _ . : = / @ %% + - only", option)
	}
	name, value, hasValue := strings.Cut(option, "=")
	attributes, isAttribute := mount.SetAttribute(s.Attributes, option)
	switch {
	case name == "vers" || name == "nfsvers":
		return s.setVersion(option, value)
	case strings.HasPrefix(name, "v") && version.MatchString(name[1:]) && !hasValue:
		return s.setVersion(option, name[1:])
	case option == "ro":
		s.Access = mount.ReadOnly
	case isAttribute:
		s.Attributes = attributes
	case valued[name] && value != "" || plain[option]:
		s.Settings = append(s.Settings, mount.Setting{Key: name, Value: value})
	case ignored[option]:
	default:
		return fmt.Errorf("mount option %q is none of NFS: see nfs(5), and take it out of the volume's mountOptions, or those of its StorageBackend and StorageClass", option)
	}
	return nil
}

func (s *Share) setVersion(option, value string) error {
	if !version.MatchString(value) {
		return fmt.Errorf("mount option %q names no version of NFS: use 3, 4, 4.0, 4.1 or 4.2", option)
	}
	s.Version = value
	return nil
}

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(list) {
		set[word] = true
	}
	return set
}
