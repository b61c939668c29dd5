package gce

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/labels"
)

// basePath is where Google serves the API, below the host.
const basePath = "/compute/v1/"

// settings are a checked spec.
type settings struct {
	cloud.Target
	diskType string
	// fsType is the file system that nodes make on empty disks.
	fsType string
	labels map[string]string
	iops   int64
	// existing allows attaching disks that Stowage didn't make.
	existing bool
}

// settingsFrom checks a spec. Parts of a call's path are checked here, too: an object may be older
// than the validation of the API.
func settingsFrom(spec stowagev1alpha1.GCEBackend) (settings, error) {
	read := settings{
		Target: cloud.Target{Project: spec.Project, Zones: spec.Zones}, labels: map[string]string{}, existing: spec.ExistingDisks,
		diskType: cmp.Or(spec.DiskType, defaultDiskType), fsType: cmp.Or(spec.FSType, defaultFSType),
	}
	if spec.CredentialsSecret != nil {
		read.Secret = spec.CredentialsSecret.Name
	}
	if spec.ProvisionedIOPS != nil {
		read.iops = *spec.ProvisionedIOPS
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
	if read.Endpoint, err = checkEndpoint(spec.Endpoint); err != nil {
		return settings{}, err
	}
	for key, value := range spec.Labels {
		read.labels[key] = string(value)
	}
	return read, checkLabels(read.labels)
}

// checkEndpoint returns an endpoint to which paths can be appended.
func checkEndpoint(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	endpoint, err := url.Parse(text)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "https" && endpoint.Scheme != "http" ||
		endpoint.User != nil || endpoint.RawQuery != "" || endpoint.Fragment != "" {
		return "", backend.Invalid.Errorf("gce.endpoint %q is no URL of a Compute API: it is to be like https://compute.example.com%s", text, basePath)
	}
	if strings.Trim(endpoint.Path, "/") == "" {
		endpoint.Path = basePath
	}
	return strings.TrimSuffix(endpoint.String(), "/") + "/", nil
}

func checkLabels(wanted map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		switch {
		case labels.IsOwn(key):
			return backend.Invalid.Errorf("gce.labels: %q is Stowage's own: choose a key that doesn't begin with %s", key, labels.Prefix)
		case !labels.IsKey(key):
			return backend.Invalid.Errorf("gce.labels: the key %q isn't one of 63 lower case letters, digits, '-' and '_' at most, a letter first", key)
		case !labels.IsText(wanted[key]):
			return backend.Invalid.Errorf("gce.labels: the value %q of %s isn't one of 63 lower case letters, digits, '-' and '_' at most", wanted[key], key)
		}
	}
	return nil
}

const defaultDiskType = "pd-balanced"

const defaultFSType = "ext4"
