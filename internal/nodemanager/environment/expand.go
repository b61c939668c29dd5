package environment

import (
	"errors"
	"strings"
)

// expand puts values in the place of $(NAME). $$ is a $, so that $$(NAME) stays $(NAME)
// without the first; every other $ is itself.
func expand(text string, valueOf func(name string) (string, error)) (string, error) {
	var result strings.Builder
	for text != "" {
		plain, rest, found := strings.Cut(text, "$")
		result.WriteString(plain)
		text = rest
		if !found {
			break
		}
		name, after, closed := "", "", false
		if inner, opened := strings.CutPrefix(text, "("); opened {
			name, after, closed = strings.Cut(inner, ")")
		}
		switch {
		case strings.HasPrefix(text, "$"):
			result.WriteString("$")
			text = text[1:]
		case closed:
			value, err := valueOf(name)
			if err != nil {
				return "", err
			}
			result.WriteString(value)
			text = after
		default:
			result.WriteString("$")
		}
		if result.Len() > maxLength {
			return "", errTooLong
		}
	}
	return result.String(), nil
}

// reference is how a variable is named in a value; one that doesn't exist stays so.
func reference(name string) string { return "$(" + name + ")" }

// maxLength is how long a path may become: longer than any that the kernel takes.
const maxLength = 4096

// errTooLong says so.
var errTooLong = errors.New("it comes to more than 4096 characters")
