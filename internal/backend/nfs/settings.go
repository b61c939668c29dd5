package nfs

import (
	"net"
	"regexp"
	"strconv"
	"strings"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// settings are a checked spec. The API server checks the same; but paths on a server and options of
// a mount are checked twice.
type settings struct {
	server       string
	path         string
	template     string
	access       tree.Access
	onDelete     stowagev1alpha1.NFSDeletion
	mountOptions []string
	// port and mountPort are those of the mount options: nodes need them for mounting, so the client
	// needs them, too.
	port      int
	mountPort int
}

var (
	hostName    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	sharePath   = regexp.MustCompile(`^(/[^/[:cntrl:],:\\]+)+$`)
	shell       = regexp.MustCompile("[];&|<>$`\"'*?!#(){}[]")
	octal       = regexp.MustCompile(`^[0-7]{3,4}$`)
	mountOption = regexp.MustCompile(`^[A-Za-z0-9_.:=/@%+-]+$`)
)

func settingsFrom(spec stowagev1alpha1.NFSBackend) (settings, error) {
	checked := settings{
		server:   spec.Server,
		path:     string(spec.Path),
		template: spec.DirectoryTemplate,
		onDelete: spec.OnDelete,
	}
	if checked.onDelete == "" {
		checked.onDelete = stowagev1alpha1.NFSDelete
	}
	if err := checkServer(checked); err != nil {
		return settings{}, err
	}
	err := checked.setAccess(spec.Access)
	if err == nil {
		err = checked.setOptions(spec)
	}
	return checked, err
}

func checkServer(checked settings) error {
	if !hostName.MatchString(checked.server) && net.ParseIP(checked.server) == nil {
		return backend.Invalid.Errorf("nfs.server %q is no host name or IP address: use one such as nfs.example.com, 10.0.0.7 or fd00::7", tree.Truncate(checked.server))
	}
	dots := strings.Contains(checked.path+"/", "/./") || strings.Contains(checked.path+"/", "/../")
	if !sharePath.MatchString(checked.path) || dots || shell.MatchString(checked.path) {
		return backend.Invalid.Errorf("nfs.path %q is no path that can be exported and mounted: use an absolute one such as /srv/volumes, "+
			"without empty, '.' or '..' parts, commas, colons, backslashes, control characters and what a shell reads", tree.Truncate(checked.path))
	}
	switch checked.onDelete {
	case stowagev1alpha1.NFSDelete, stowagev1alpha1.NFSArchive, stowagev1alpha1.NFSRetain:
		return nil
	default:
		return backend.Invalid.Errorf("nfs.onDelete %q is unknown: use Delete, Archive or Retain", tree.Truncate(string(checked.onDelete)))
	}
}

func (s *settings) setAccess(access stowagev1alpha1.NFSAccess) error {
	const defaultMode, highest = "0770", 1<<32 - 2
	mode := access.Mode
	if mode == "" {
		mode = defaultMode
	}
	if !octal.MatchString(mode) {
		return backend.Invalid.Errorf("nfs.access.mode %q is no mode: use three or four octal digits, such as 0770", tree.Truncate(mode))
	}
	if min(access.UID, access.GID) < 0 || max(access.UID, access.GID) > highest {
		return backend.Invalid.Errorf("nfs.access: uid %d or gid %d is none: use a number from 0 to %d", access.UID, access.GID, int64(highest))
	}
	bits, err := strconv.ParseUint(mode, 8, 32)
	s.access = tree.Access{UID: uint32(access.UID), GID: uint32(access.GID), Mode: uint32(bits)}
	return err
}

func (s *settings) setOptions(spec stowagev1alpha1.NFSBackend) error {
	if spec.NFSVersion != "" {
		s.mountOptions = append(s.mountOptions, "nfsvers="+spec.NFSVersion)
	}
	for _, option := range spec.MountOptions {
		s.mountOptions = append(s.mountOptions, string(option))
	}
	for _, option := range s.mountOptions {
		if !mountOption.MatchString(option) {
			return backend.Invalid.Errorf("nfs.mountOptions: %q is not one mount option: give each on its own, "+
				"of letters, digits and _ . : = / @ %% + - only", tree.Truncate(option))
		}
		name, value, _ := strings.Cut(option, "=")
		target := map[string]*int{"port": &s.port, "mountport": &s.mountPort}[name]
		if target == nil {
			continue
		}
		port, err := strconv.ParseUint(value, 10, 16)
		if err != nil {
			return backend.Invalid.Errorf("nfs.mountOptions: %q names no port: use a number from 0 to 65535", tree.Truncate(option))
		}
		*target = int(port)
	}
	return nil
}

// nodeOptions are the mount options as the node reads them.
func (s *settings) nodeOptions() string { return strings.Join(s.mountOptions, ",") }
