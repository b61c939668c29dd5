// Package settings checks the spec of a gce backend.
package settings

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

// Settings are a checked spec.
type Settings struct {
	cloud.Target
	// Disks is what disks have whose class says nothing else.
	Disks diskclass.Class
	// FSType is the file system that nodes make on empty disks.
	FSType string
	// Existing allows attaching disks that Stowage didn't make.
	Existing bool
}

// From checks a spec. Parts of a call's path are checked here, too: an object may be older
// than the validation of the API.
func From(spec stowagev1alpha1.GCEBackend) (Settings, error) {
	read := Settings{
		Target: cloud.Target{Project: spec.Project, Zones: spec.Zones}, Existing: spec.ExistingDisks, FSType: cmp.Or(spec.FSType, defaultFSType),
		Disks: diskclass.Class{Type: cmp.Or(spec.DiskType, defaultDiskType), Labels: map[string]string{}, Key: spec.EncryptionKey},
	}
	if spec.CredentialsSecret != nil {
		read.Secret = spec.CredentialsSecret.Name
	}
	if spec.ProvisionedIOPS != nil {
		read.Disks.IOPS = *spec.ProvisionedIOPS
	}
	if !cloud.ValidProject.MatchString(spec.Project) {
		return Settings{}, backend.Invalid.Errorf("gce.project %q is no id of a project", spec.Project)
	}
	for _, zone := range spec.Zones {
		if !cloud.ValidZone.MatchString(zone) {
			return Settings{}, backend.Invalid.Errorf("gce.zones: %q is no name of a zone, such as europe-west3-a", zone)
		}
	}
	var err error
	if read.Endpoint, err = transport.EndpointOf(spec.Endpoint); err != nil {
		return Settings{}, err
	}
	for key, value := range spec.Labels {
		read.Disks.Labels[key] = string(value)
	}
	return read, errors.Join(labels.Check(read.Disks.Labels), diskclass.CheckKey("gce.encryptionKey", spec.EncryptionKey))
}

const defaultDiskType = "pd-balanced"

const defaultFSType = "ext4"
