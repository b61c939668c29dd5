package wire

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	resourceName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	// DeviceName is the form that refusals of Google name: the documentation leaves it open.
	DeviceName = regexp.MustCompile(`^\w[\w.-]{0,254}$`)
	labelKey   = regexp.MustCompile(`^[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]{0,62}$`)
	labelValue = regexp.MustCompile(`^[\p{Ll}\p{Lo}\p{N}_-]{0,63}$`)
	// RequestUUID is the form of the id by which a request that is sent again is known.
	RequestUUID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
)

const (
	maxLabels = 64
	// maxLabelBytes is how long a key or a value may be in UTF-8.
	maxLabelBytes = 128
	// ZeroUUID is no id of a request.
	ZeroUUID = "00000000-0000-0000-0000-000000000000"
)

// CheckName checks the name of a new resource.
func CheckName(name string) error {
	if resourceName.MatchString(name) {
		return nil
	}
	why := fmt.Sprintf("Must be a match of regex '%s'", strings.Trim(resourceName.String(), "^$"))
	return Invalid("resource.name", name, why)
}

// CheckLabels checks the labels of a resource.
func CheckLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return Invalid("resource.labels", "", fmt.Sprintf("At most %d labels are allowed.", maxLabels))
	}
	for key, value := range labels {
		if !labelKey.MatchString(key) || len(key) > maxLabelBytes || !utf8.ValidString(key) {
			return Invalid("resource.labels", key, "Label keys must start with a lowercase letter, and hold lowercase letters, digits, '_' and '-', 63 at most.")
		}
		if !labelValue.MatchString(value) || len(value) > maxLabelBytes {
			return Invalid("resource.labels", value, "Label values hold lowercase letters, digits, '_' and '-', 63 at most.")
		}
	}
	return nil
}

// ProjectPath is the path by which a project is known.
func ProjectPath(project string) string { return "projects/" + project }

// ZonePath is the path by which a zone is known.
func ZonePath(project, zone string) string { return ProjectPath(project) + "/zones/" + zone }

// RegionPath is the path of the region that a zone is in.
func RegionPath(project, zone string) string {
	return ProjectPath(project) + "/regions/" + RegionOf(zone)
}

// GlobalScope is the scope of what is in no zone or region.
const GlobalScope = "global"

// ScopeOf is the scope of the resource at a path, as aggregated lists call it:
// zones/<zone>, regions/<region> or global.
func ScopeOf(path string) string {
	if zone := ZoneOf(path); zone != "" {
		return "zones/" + zone
	}
	if region := Segment(path, "regions"); region != "" {
		return "regions/" + region
	}
	return GlobalScope
}

// RegionAt is the region of the zonal or regional resource at a path.
func RegionAt(path string) string {
	if region := Segment(path, "regions"); region != "" {
		return region
	}
	return RegionOf(ZoneOf(path))
}

// RegionOf is the region that a zone is in: europe-west3 for europe-west3-a.
func RegionOf(zone string) string {
	if at := strings.LastIndexByte(zone, '-'); at >= 0 {
		return zone[:at]
	}
	return zone
}

// BaseName is what a path ends with: the name of the resource.
func BaseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// ZoneOf is the zone that the path of a resource names; empty for none.
func ZoneOf(path string) string { return Segment(path, "zones") }

// ProjectOf is the project that the path of a resource names.
func ProjectOf(path string) string { return Segment(path, "projects") }

// Segment is what follows a collection in a path; empty where the path lacks it.
func Segment(path, collection string) string {
	parts := strings.Split(path, "/")
	for i := 0; i+1 < len(parts); i += 2 {
		if parts[i] == collection {
			return parts[i+1]
		}
	}
	return ""
}

// Reference reads how a client names another resource: by a URL, by a path from
// projects/ on, or by one within the project.
func Reference(text, project string) string {
	if at := strings.Index(text, "projects/"); at >= 0 {
		return text[at:]
	}
	if text == "" {
		return ""
	}
	return ProjectPath(project) + "/" + strings.TrimPrefix(text, "/")
}
