// Package labels has the labels of disks and snapshots of Google Compute Engine. They serve to find what
// Stowage made. Only a description proves the owner: it can't be changed.
package labels

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/digest"
)

// Prefix is what Stowage's own labels begin with.
const Prefix = "stowage-"

// Stowage's own labels.
const (
	Cluster  = Prefix + "cluster"
	Backend  = Prefix + "backend"
	Claim    = Prefix + "claim-uid"
	Retained = Prefix + "retained"
)

const maxLength = 63

// The labels that Google allows, as far as they are ASCII.
var (
	validKey  = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)
	validText = regexp.MustCompile(`^[a-z0-9_-]{0,63}$`)
)

// IsKey reports whether Google allows a key.
func IsKey(key string) bool { return validKey.MatchString(key) }

// IsText reports whether Google allows a value.
func IsText(value string) bool { return validText.MatchString(value) }

// IsOwn reports whether a key is Stowage's own.
func IsOwn(key string) bool { return strings.HasPrefix(key, Prefix) }

// ValueOf writes a name of a Kubernetes object in the letters that Google allows. A name that is too
// long ends in a hash.
func ValueOf(name string) string {
	const hashed = 12
	value := strings.ReplaceAll(strings.ToLower(name), ".", "_")
	if len(value) <= maxLength && IsText(value) {
		return value
	}
	value = strings.Map(func(letter rune) rune {
		if !IsText(string(letter)) {
			return '-'
		}
		return letter
	}, value)
	return value[:min(len(value), maxLength-hashed-1)] + "-" + digest.Hex(name)[:hashed]
}

// Of reads labels such as team=shop,tier=gold. Errors of kind Invalid name where they are from.
func Of(where, text string) (map[string]string, error) {
	read := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if IsOwn(key) || !IsKey(key) || !IsText(value) {
			return nil, backend.Invalid.Errorf("%s has %.100q: write key=value, with commas between, in lower case letters, "+
				"digits, '-' and '_'; keys that begin with %s are Stowage's own", where, pair, Prefix)
		}
		read[key] = value
	}
	return read, nil
}

// Check returns an error of kind Invalid where a spec has labels that can't be set.
func Check(wanted map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		switch {
		case IsOwn(key):
			return backend.Invalid.Errorf("gce.labels: %q is Stowage's own: choose a key that doesn't begin with %s", key, Prefix)
		case !IsKey(key):
			return backend.Invalid.Errorf("gce.labels: the key %q isn't one of 63 lower case letters, digits, '-' and '_' at most, a letter first", key)
		case !IsText(wanted[key]):
			return backend.Invalid.Errorf("gce.labels: the value %q of %s isn't one of 63 lower case letters, digits, '-' and '_' at most", wanted[key], key)
		}
	}
	return nil
}
