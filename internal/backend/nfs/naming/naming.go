// Package naming names the directories of NFS volumes: by the template of the backend, and always below the share
// and outside Stowage's own directory.
package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

const (
	defaultTemplate = "{{namespace}}-{{name}}-{{uid}}"

	labelField      = "labels."
	annotationField = "annotations."

	// MaxLength is how long a path can be, in bytes: the limit of file systems.
	MaxLength = 1024
	// MaxPart is how long one part of it can be.
	MaxPart = 255
	// hashLength is how much of a hash replaces the end of a part that is too long.
	hashLength = 16
)

// UnsafeChars are those that no part of a path has.
var UnsafeChars = regexp.MustCompile(`[^A-Za-z0-9._-]`)

var field = regexp.MustCompile(`\{\{([^{}]*)\}\}`)

// Directory names the directory of a request's volume. It returns only a path in the share and
// outside Stowage's directory.
func Directory(template string, request backend.Request) (string, error) {
	if template == "" {
		template = defaultTemplate
	}
	var problem error
	expanded := field.ReplaceAllStringFunc(template, func(text string) string {
		value, err := valueOf(field.FindStringSubmatch(text)[1], request)
		if err != nil {
			problem = err
		}
		return value
	})
	if problem != nil {
		return "", problem
	}
	if strings.ContainsAny(expanded, "{}") {
		return "", backend.Invalid.Errorf("nfs.directoryTemplate %q: a field is written {{namespace}}, {{name}}, {{uid}}, {{labels.KEY}} or {{annotations.KEY}}", tree.Truncate(template))
	}
	directory := shorten(expanded)
	return directory, Check(directory)
}

// valueOf is the value of a field, without characters that have a meaning in a path. It refuses a
// value that leads out of a directory.
func valueOf(name string, request backend.Request) (string, error) {
	value := ""
	switch {
	case name == "namespace":
		value = request.Claim.Namespace
	case name == "name":
		value = request.Claim.Name
	case name == "uid":
		value = string(request.Claim.UID)
	case strings.HasPrefix(name, labelField):
		value = request.Labels[strings.TrimPrefix(name, labelField)]
	case strings.HasPrefix(name, annotationField):
		value = request.Annotations[strings.TrimPrefix(name, annotationField)]
	default:
		return "", backend.Invalid.Errorf("nfs.directoryTemplate: unknown field {{%s}}: "+
			"there are namespace, name, uid, labels.KEY and annotations.KEY", tree.Truncate(name))
	}
	if value == "" {
		return "", backend.Invalid.Errorf("nfs.directoryTemplate: the claim has no value for {{%s}}: add it to the claim", tree.Truncate(name))
	}
	for part := range strings.SplitSeq(value, "/") {
		if part == ".." {
			return "", backend.Invalid.Errorf("nfs.directoryTemplate: the claim's value %q for {{%s}} leads out of a directory: change it", tree.Truncate(value), tree.Truncate(name))
		}
	}
	return UnsafeChars.ReplaceAllString(value, "_"), nil
}

// Check returns an error of kind Invalid for a path that must not be the directory of a
// volume. It checks again before anything is removed.
func Check(directory string) error {
	switch {
	case directory == "":
		return backend.Invalid.Errorf("the volume's directory has no name: change nfs.directoryTemplate")
	case strings.HasPrefix(directory, "/"):
		return backend.Invalid.Errorf("the volume's directory %q is an absolute path: change nfs.directoryTemplate", tree.Truncate(directory))
	case len(directory) > MaxLength:
		return backend.Invalid.Errorf("the volume's directory %q is longer than %d characters: change nfs.directoryTemplate", tree.Truncate(directory), MaxLength)
	}
	for part := range strings.SplitSeq(directory, "/") {
		switch {
		case part == "":
			return backend.Invalid.Errorf("the volume's directory %q has an empty part: change nfs.directoryTemplate", tree.Truncate(directory))
		case strings.HasPrefix(part, "."):
			// "." and ".." lead elsewhere; ".stowage" is ours, ".snapshot" the server's.
			return backend.Invalid.Errorf("the volume's directory %q has a part that begins with a dot: change nfs.directoryTemplate", tree.Truncate(directory))
		case UnsafeChars.MatchString(part):
			return backend.Invalid.Errorf("the volume's directory %q has other characters than letters, digits, '.', '_' and '-': change nfs.directoryTemplate", tree.Truncate(directory))
		case len(part) > MaxPart:
			return backend.Invalid.Errorf("the volume's directory %q has a part of more than %d characters: change nfs.directoryTemplate", tree.Truncate(directory), MaxPart)
		}
	}
	return nil
}

// shorten truncates parts that are longer than a name can be. A hash of the whole part keeps them
// different.
func shorten(directory string) string {
	parts := strings.Split(directory, "/")
	for i, part := range parts {
		if len(part) > MaxPart {
			sum := sha256.Sum256([]byte(part))
			parts[i] = part[:MaxPart-hashLength-1] + "-" + hex.EncodeToString(sum[:])[:hashLength]
		}
	}
	return strings.Join(parts, "/")
}
