package wire

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// outputOnly are fields that Google sets itself, and ignores in requests.
var outputOnly = []string{
	"archiveSizeBytes", "asyncSecondaryDisks", "creationTimestamp", "id", "kind", "labelFingerprint",
	"lastAttachTimestamp", "lastDetachTimestamp", "region", "resourceStatus", "satisfiesPzi", "satisfiesPzs",
	"selfLink", "selfLinkWithId", "sourceDiskId", "sourceImageId", "sourceInstantSnapshotId", "sourceSnapshotId",
	"state", "status", "storageBytes", "storageBytesStatus", "users", "zone",
}

// IntoServed decodes the body, and refuses fields that this server would not keep. A disk without
// its encryption key, say, is not what the client asked for.
func (r *Request) IntoServed(resource any, served ...string) error {
	if len(r.body) == 0 {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(r.body, &fields); err != nil {
		return r.Into(resource) // says what is wrong
	}
	kept := map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch {
		case slices.Contains(served, name):
			kept[name] = fields[name]
		case slices.Contains(outputOnly, name) || isEmpty(fields[name]):
		case r.version == stable && !hasField(resource, name):
			return r.Into(resource) // v1 has no such field
		default:
			return NotServed("field resource." + name + " of " + r.MethodName)
		}
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	reduced := *r
	reduced.body = text
	return reduced.Into(resource)
}

// isEmpty reports whether a value says no more than its absence.
func isEmpty(value json.RawMessage) bool {
	return slices.ContainsFunc([]string{`null`, `false`, `0`, `"0"`, `""`, `[]`, `{}`}, func(empty string) bool {
		return bytes.Equal(bytes.TrimSpace(value), []byte(empty))
	})
}

// hasField reports whether Google's form of a resource has a field.
func hasField(resource any, name string) bool {
	text, err := json.Marshal(map[string]any{name: nil})
	if err != nil {
		return false
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(resource) == nil
}
