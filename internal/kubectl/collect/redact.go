// Package collect is the verb collect of kubectl stowage. It writes an archive for a bug report,
// with the objects, events and logs around Stowage's volumes, bounded, and without secrets.
//
// cmd/kubectl-stowage calls it. It never reads Secrets or ConfigMaps. What looks like a secret
// in other objects and in logs is replaced, by redact.go.
package collect

import "regexp"

// removed stands for a value that was left out.
const removed = "REMOVED"

var (
	// secretKey are keys whose values may be secrets. Keys that only name or point to one,
	// such as secretName and nodeStageSecretRef, end otherwise or hold objects.
	secretKey = regexp.MustCompile(`(?i)(password|passwd|passphrase|secret|token|credentials?|api-?_?key|private-?_?key|access-?_?key)$`)
	// secretText are secrets within texts, and what remains of them. They are assignments, such as
	// in mount options, bearer tokens, JSON web tokens, keys, and passwords in URLs.
	secretText = []struct {
		secret  *regexp.Regexp
		remains string
	}{
		{regexp.MustCompile(`(?i)((?:password|passwd|passphrase|pass|secret|token|credentials?|api-?_?key|access-?_?key)["']?\s*[=:]\s*["']?)[^\s,;"'&]+`), "${1}" + removed},
		{regexp.MustCompile(`(?i)(bearer\s+)[A-Za-z0-9._~+/=-]+`), "${1}" + removed},
		{regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`), removed},
		{regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`), removed},
		{regexp.MustCompile(`([a-z][a-z0-9+.-]*://[^/\s:@]*:)[^/\s@]+@`), "${1}" + removed + "@"},
	}
	// dropped are annotations that repeat whole objects, and fields that say nothing of a problem.
	dropped = map[string]bool{"managedFields": true, "kubectl.kubernetes.io/last-applied-configuration": true}
)

// redactText replaces the secrets in a text.
func redactText(text string) string {
	for _, of := range secretText {
		text = of.secret.ReplaceAllString(text, of.remains)
	}
	return text
}

// redact returns a JSON value without secrets. The values of environment variables go, too:
// users put passwords there under any name.
func redact(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return redactMap(value)
	case []any:
		for i := range value {
			value[i] = redact(value[i])
		}
		return value
	case string:
		return redactText(value)
	default:
		return value
	}
}

func redactMap(object map[string]any) map[string]any {
	for key, value := range object {
		text, isText := value.(string)
		switch {
		case dropped[key]:
			delete(object, key)
		case key == "env":
			object[key] = redactEnvironment(value)
		case isText && text != "" && secretKey.MatchString(key):
			object[key] = removed
		default:
			object[key] = redact(value)
		}
	}
	return object
}

func redactEnvironment(value any) any {
	variables, _ := value.([]any)
	for _, variable := range variables {
		if fields, is := variable.(map[string]any); is && fields["value"] != nil {
			fields["value"] = removed
		}
	}
	return redact(value)
}
