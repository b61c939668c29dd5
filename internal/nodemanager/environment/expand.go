package environment

import (
	"errors"
	"strings"
)

// maxLength is the longest value in characters: longer than any path that the kernel takes.
const maxLength = 4096

var errTooLong = errors.New("it comes to more than 4096 characters")

// expand replaces $(NAME) by its value. $$ is a $, so that $$(NAME) becomes $(NAME); every other $
// is itself.
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

// reference is the text of a variable in a value. A variable that doesn't exist stays so.
func reference(name string) string { return "$(" + name + ")" }
