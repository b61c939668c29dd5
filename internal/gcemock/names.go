package gcemock

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	resourceName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	// Google's docs leave the form of device names open; its refusals name this one.
	deviceName  = regexp.MustCompile(`^\w[\w.-]{0,254}$`)
	labelKey    = regexp.MustCompile(`^[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]{0,62}$`)
	labelValue  = regexp.MustCompile(`^[\p{Ll}\p{Lo}\p{N}_-]{0,63}$`)
	requestUUID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
)

const (
	maxLabels = 64
	// maxLabelBytes is how long a key or a value may be in UTF-8.
	maxLabelBytes = 128
	zeroUUID      = "00000000-0000-0000-0000-000000000000"
)

// checkName checks the name of a new resource.
func checkName(name string) error {
	if resourceName.MatchString(name) {
		return nil
	}
	why := fmt.Sprintf("Must be a match of regex '%s'", strings.Trim(resourceName.String(), "^$"))
	return errInvalid("resource.name", name, why)
}

// checkLabels checks the labels of a resource.
func checkLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return errInvalid("resource.labels", "", fmt.Sprintf("At most %d labels are allowed.", maxLabels))
	}
	for key, value := range labels {
		if !labelKey.MatchString(key) || len(key) > maxLabelBytes || !utf8.ValidString(key) {
			return errInvalid("resource.labels", key, "Label keys must start with a lowercase letter, and hold lowercase letters, digits, '_' and '-', 63 at most.")
		}
		if !labelValue.MatchString(value) || len(value) > maxLabelBytes {
			return errInvalid("resource.labels", value, "Label values hold lowercase letters, digits, '_' and '-', 63 at most.")
		}
	}
	return nil
}

// projectPath, zonePath and the like are the paths by which rows are known.
func projectPath(project string) string { return "projects/" + project }

func zonePath(project, zone string) string { return projectPath(project) + "/zones/" + zone }

func regionPath(project, zone string) string {
	return projectPath(project) + "/regions/" + regionOf(zone)
}

// scopeOf is the scope of the resource at a path, as aggregated lists call it:
// zones/<zone> or regions/<region>.
func scopeOf(path string) string {
	if zone := zoneOf(path); zone != "" {
		return "zones/" + zone
	}
	return "regions/" + segment(path, "regions")
}

// regionAt is the region of the zonal or regional resource at a path.
func regionAt(path string) string {
	if region := segment(path, "regions"); region != "" {
		return region
	}
	return regionOf(zoneOf(path))
}

// regionOf is the region that a zone is in: europe-west3 for europe-west3-a.
func regionOf(zone string) string {
	if at := strings.LastIndexByte(zone, '-'); at >= 0 {
		return zone[:at]
	}
	return zone
}

// baseName is what a path ends with: the name of the resource.
func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// zoneOf and projectOf are what the path of a resource says.
func zoneOf(path string) string { return segment(path, "zones") }

func projectOf(path string) string { return segment(path, "projects") }

func segment(path, collection string) string {
	parts := strings.Split(path, "/")
	for i := 0; i+1 < len(parts); i += 2 {
		if parts[i] == collection {
			return parts[i+1]
		}
	}
	return ""
}

// reference reads how a client names another resource: by a URL, by a path from
// projects/ on, or by one within the project.
func reference(text, project string) string {
	if at := strings.Index(text, "projects/"); at >= 0 {
		return text[at:]
	}
	if text == "" {
		return ""
	}
	return projectPath(project) + "/" + strings.TrimPrefix(text, "/")
}
