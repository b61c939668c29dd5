package nfs_test

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/nfs"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// ofBackend is a volume of the nfs backend.
func ofBackend(server, path, options string, more ...string) volumes.Spec {
	volume := &corev1.PersistentVolume{}
	volume.Name = "pvc-1"
	volume.Spec.MountOptions = more
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: stowagev1alpha1.NFSDriver, VolumeAttributes: map[string]string{
		stowagev1alpha1.ServerAttribute: server, stowagev1alpha1.PathAttribute: path, stowagev1alpha1.MountOptionsAttribute: options,
	}}
	return volumes.Spec{PersistentVolume: volume}
}

//proves:nfs/mountOptions
func TestAVolumeIsReadOrRefused(t *testing.T) {
	tests := map[string]struct {
		spec volumes.Spec
		says string
	}{
		"as the backend makes it":     {ofBackend("nfs.example.com", "/srv/a", "nfsvers=4.1,noatime,port=2050"), ""},
		"with an IPv6 address":        {ofBackend("fd00::7", "/srv/a", ""), ""},
		"with options of the class":   {ofBackend("10.0.0.7", "/srv/a", "", "hard", "timeo=600", "v4.2"), ""},
		"without a server":            {ofBackend("", "/srv/a", ""), "no host name or IP address"},
		"with a server and a path":    {ofBackend("nfs:/other", "/srv/a", ""), "no host name or IP address"},
		"with a server and an option": {ofBackend("nfs,addr=1.2.3.4", "/srv/a", ""), "no host name or IP address"},
		"without a path":              {ofBackend("nfs", "", ""), "with an absolute one"},
		"with a relative path":        {ofBackend("nfs", "srv", ""), "with an absolute one"},
		"with a path that leads out":  {ofBackend("nfs", "/srv/../etc", ""), "without '..'"},
		"with a line break":           {ofBackend("nfs", "/srv\n/a", ""), "control characters"},
		"with two options in one":     {ofBackend("nfs", "/srv", "", "hard,addr=1.2.3.4"), "is not one mount option"},
		"with options on two lines":   {ofBackend("nfs", "/srv", "", "hard\nsoft"), "is not one mount option"},
		"with shell characters":       {ofBackend("nfs", "/srv", "", "hard;reboot"), "is not one mount option"},
		"with an empty option":        {ofBackend("nfs", "/srv", "hard,,soft"), "is not one mount option"},
		"with another address":        {ofBackend("nfs", "/srv", "addr=1.2.3.4"), "is none of NFS"},
		"with another mount address":  {ofBackend("nfs", "/srv", "mountaddr=1.2.3.4"), "is none of NFS"},
		"with another source":         {ofBackend("nfs", "/srv", "source=x"), "is none of NFS"},
		"with a value too few":        {ofBackend("nfs", "/srv", "timeo"), "is none of NFS"},
		"with a value too many":       {ofBackend("nfs", "/srv", "hard=1"), "is none of NFS"},
		"with an unknown version":     {ofBackend("nfs", "/srv", "nfsvers=5"), "use 3, 4, 4.0, 4.1 or 4.2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := nfs.ShareOf(test.spec)
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

//proves:nfs/mountOptions
func TestOptionsOfTheVolumeOutweighThoseOfTheBackend(t *testing.T) {
	got, err := nfs.ShareOf(ofBackend("nfs", "/srv", "nfsvers=4.1,noatime,noexec,sharecache", "vers=3", "strictatime", "exec", "_netdev", "nosuid"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != "3" || got.Attributes != unix.MOUNT_ATTR_STRICTATIME|unix.MOUNT_ATTR_NOSUID {
		t.Errorf("got version %s, attributes %#x", got.Version, got.Attributes)
	}
	if len(got.Settings) != 1 || got.Settings[0].Key != "sharecache" {
		t.Errorf("got settings %v", got.Settings)
	}
}

func TestAVolumeSharesNoCacheByDefault(t *testing.T) {
	got, err := nfs.ShareOf(ofBackend("nfs", "/srv", ""))
	if err != nil || len(got.Settings) != 1 || got.Settings[0].Key != "nosharecache" {
		t.Errorf("got %+v, %v", got, err)
	}
}

//proves:nfs/readOnly
func TestWhatMakesAVolumeReadOnly(t *testing.T) {
	source := &corev1.NFSVolumeSource{Server: "nfs", Path: "/srv", ReadOnly: true}
	volume := &corev1.PersistentVolume{}
	volume.Spec.NFS = source
	writable := ofBackend("nfs", "/srv", "rw")
	reader := ofBackend("nfs", "/srv", "")
	reader.Access = mount.ReadOnly
	tests := map[string]struct {
		spec volumes.Spec
		want mount.Access
	}{
		"nothing":        {writable, mount.ReadWrite},
		"the pod":        {reader, mount.ReadOnly},
		"an option":      {ofBackend("nfs", "/srv", "ro"), mount.ReadOnly},
		"its nfs source": {volumes.Spec{PersistentVolume: volume}, mount.ReadOnly},
		"the pod's own":  {volumes.Spec{Volume: corev1.Volume{VolumeSource: corev1.VolumeSource{NFS: source}}}, mount.ReadOnly},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := nfs.ShareOf(test.spec); err != nil || got.Access != test.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestVolumesWithDifferentOptionsAreMountedApart(t *testing.T) {
	keys := map[string]bool{}
	for _, options := range []string{"", "soft", "timeo=600", "nfsvers=3"} {
		read, err := nfs.ShareOf(ofBackend("nfs", "/srv", options))
		if err != nil {
			t.Fatal(err)
		}
		keys[read.Key()] = true
	}
	reader := ofBackend("nfs", "/srv", "")
	reader.Access = mount.ReadOnly
	read, err := nfs.ShareOf(reader)
	if err != nil || !keys[read.Key()] || len(keys) != 4 {
		t.Errorf("a reader's key is %s (%v), the others are %v", read.Key(), err, keys)
	}
}
