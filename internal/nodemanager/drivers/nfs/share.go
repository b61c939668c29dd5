package nfs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// keyLength is how many digits of a share's hash name its directory: enough that no two of a node
// collide.
const keyLength = 32

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// Share is a directory of an NFS server, as a volume asks for it.
type Share struct {
	remote.NFS
	// Access is the pod's, not the mount's.
	Access mount.Access
}

// ShareOf reads the share of a volume of the driver, or of an nfs source. The volume's author
// isn't trusted: an invalid server, path or option is refused before the kernel sees it.
func ShareOf(spec volumes.Spec) (*Share, error) {
	read, options := &Share{Access: spec.Access}, []string(nil)
	source := spec.Volume.NFS
	if volume := spec.PersistentVolume; volume != nil {
		source, options = volume.Spec.NFS, volume.Spec.MountOptions
		if source == nil {
			source, options = ofDriver(volume)
		}
	}
	read.Server, read.Path = source.Server, source.Path
	if source.ReadOnly {
		read.Access = mount.ReadOnly
	}
	if err := checkAddress(read.Server, read.Path); err != nil {
		return nil, err
	}
	read.Path = path.Clean(read.Path)
	if err := read.setOptions(options); err != nil {
		return nil, err
	}
	return read, nil
}

// ofDriver reads a volume of Stowage's own driver. The backend's mount options come first, so that
// those of the volume override them.
func ofDriver(volume *corev1.PersistentVolume) (*corev1.NFSVolumeSource, []string) {
	attributes := volume.Spec.CSI.VolumeAttributes
	var options []string
	if joined := attributes[stowagev1alpha1.MountOptionsAttribute]; joined != "" {
		options = strings.Split(joined, ",")
	}
	return &corev1.NFSVolumeSource{
		Server: attributes[stowagev1alpha1.ServerAttribute],
		Path:   attributes[stowagev1alpha1.PathAttribute],
	}, append(options, volume.Spec.MountOptions...)
}

func checkAddress(server, directory string) error {
	_, err := netip.ParseAddr(server)
	if err != nil && !hostName.MatchString(server) {
		return fmt.Errorf("the volume's NFS server %q is no host name or IP address: make a volume that names one such as nfs.example.com or 10.0.0.7", server)
	}
	control := strings.ContainsFunc(directory, func(r rune) bool { return r < ' ' || r == 0x7f })
	if !path.IsAbs(directory) || control || strings.Contains(directory+"/", "/../") {
		return fmt.Errorf("the volume's NFS path %q is none: make a volume with an absolute one such as /srv/volumes, without '..' and control characters", directory)
	}
	return nil
}

// Key names a mount: volumes with the same server, path and options share one.
func (s *Share) Key() string {
	text, err := json.Marshal(s.NFS)
	if err != nil {
		// Strings and numbers can always be written.
		panic(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:keyLength]
}

// directory is the server and path, without the options.
func (s *Share) directory() string { return s.Server + ":" + s.Path }

// isReadOnly reports whether the mount itself is read-only.
func (s *Share) isReadOnly() bool { return s.Attributes&unix.MOUNT_ATTR_RDONLY != 0 }
