package wire

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// commonParameters are those of every method. Only fields changes an answer here.
var commonParameters = []string{
	"$.xgafv", "access_token", "alt", "fields", "key", "oauth_token", "prettyPrint", "quotaUser", "userIp",
}

// listParameters are those of methods that list. An answer is never partial here.
var listParameters = []string{"filter", "maxResults", "orderBy", "pageToken", "returnPartialSuccess"}

// methodParameters are those that only some methods have.
var methodParameters = map[string][]string{
	"disks.insert":                {"sourceImage"},
	"disks.update":                {"paths", "updateMask"},
	"images.insert":               {"forceCreate"},
	"instances.attachDisk":        {"forceAttach"},
	"instances.detachDisk":        {"deviceName"},
	"instances.setDiskAutoDelete": {"autoDelete", "deviceName"},
	"regionDisks.insert":          {"sourceImage"},
	"regionDisks.update":          {"paths", "updateMask"},
}

// checkParameters refuses parameters that this server would ignore: a call with them asks
// for something else.
func checkParameters(called Method, query url.Values) error {
	known := slices.Concat(commonParameters, methodParameters[called.Name])
	_, verb, _ := strings.Cut(called.Name, ".")
	switch {
	case strings.HasPrefix(verb, "list") || verb == "aggregatedList":
		known = append(known, listParameters...)
	case called.Changes:
		known = append(known, "requestId")
	}
	for _, parameter := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(known, parameter) {
			return NotServed("parameter " + parameter + " of " + called.Name)
		}
	}
	if alt := query.Get("alt"); alt != "" && alt != "json" {
		return NotServed("answers as " + alt)
	}
	return nil
}
