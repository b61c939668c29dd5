package gcemock

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
func checkParameters(called method, query url.Values) error {
	known := slices.Concat(commonParameters, methodParameters[called.name])
	_, verb, _ := strings.Cut(called.name, ".")
	switch {
	case strings.HasPrefix(verb, "list") || verb == "aggregatedList":
		known = append(known, listParameters...)
	case called.changes:
		known = append(known, "requestId")
	}
	for _, parameter := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(known, parameter) {
			return errNotServed("parameter " + parameter + " of " + called.name)
		}
	}
	if alt := query.Get("alt"); alt != "" && alt != "json" {
		return errNotServed("answers as " + alt)
	}
	return nil
}
