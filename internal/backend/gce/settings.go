package gce

import (
	"cmp"
	"errors"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/diskclass"
	"github.com/stowage-dev/stowage/internal/backend/gce/labels"
	"github.com/stowage-dev/stowage/internal/backend/gce/transport"
)

// settings are a checked spec.
type settings struct {
	cloud.Target
	// disks is what disks have whose class says nothing else.
	disks diskclass.Class
	// fsType is the file system that nodes make on empty disks.
	fsType string
	// existing allows attaching disks that Stowage didn't make.
	existing bool
}

// settingsFrom checks a spec. Parts of a call's path are checked here, too: an object may be older
// than the validation of the API.
func settingsFrom(spec stowagev1alpha1.GCEBackend) (settings, error) {
	read := settings{
		Target: cloud.Target{Project: spec.Project, Zones: spec.Zones}, existing: spec.ExistingDisks, fsType: cmp.Or(spec.FSType, defaultFSType),
		disks: diskclass.Class{Type: cmp.Or(spec.DiskType, defaultDiskType), Labels: map[string]string{}, Key: spec.EncryptionKey},
	}
	if spec.CredentialsSecret != nil {
		read.Secret = spec.CredentialsSecret.Name
	}
	if spec.ProvisionedIOPS != nil {
		read.disks.IOPS = *spec.ProvisionedIOPS
	}
	if !cloud.ValidProject.MatchString(spec.Project) {
		return settings{}, backend.Invalid.Errorf("gce.project %q is no id of a project", spec.Project)
	}
	for _, zone := range spec.Zones {
		if !cloud.ValidZone.MatchString(zone) {
			return settings{}, backend.Invalid.Errorf("gce.zones: %q is no name of a zone, such as europe-west3-a", zone)
		}
	}
	var err error
	if read.Endpoint, err = transport.EndpointOf(spec.Endpoint); err != nil {
		return settings{}, err
	}
	for key, value := range spec.Labels {
		read.disks.Labels[key] = string(value)
	}
	return read, errors.Join(labels.Check(read.disks.Labels), diskclass.CheckKey("gce.encryptionKey", spec.EncryptionKey))
}

const defaultDiskType = "pd-balanced"

const defaultFSType = "ext4"
