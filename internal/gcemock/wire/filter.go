package wire

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// filter says which resources a client wants to see. The zero filter lets all through.
type filter struct{ root condition }

// condition is a part of a filter: it holds for a resource, by its fields, or not.
type condition interface{ holds(fields any) bool }

type (
	both   struct{ left, right condition }
	either struct{ left, right condition }
	not    struct{ inner condition }
)

func (c both) holds(fields any) bool   { return c.left.holds(fields) && c.right.holds(fields) }
func (c either) holds(fields any) bool { return c.left.holds(fields) || c.right.holds(fields) }
func (c not) holds(fields any) bool    { return !c.inner.holds(fields) }

// holds reports whether a resource passes, by what a client would see of it.
func (f filter) holds(resource any) bool {
	if f.root == nil {
		return true
	}
	text, err := json.Marshal(resource)
	if err != nil {
		return false
	}
	var fields any
	return json.Unmarshal(text, &fields) == nil && f.root.holds(fields)
}

// comparison compares one field with a value.
type comparison struct {
	path     []string
	operator string
	value    string
	// pattern is what eq and ne compare with: all of the field must match it.
	pattern *regexp.Regexp
}

func newComparison(field, operator, value string) (condition, error) {
	c := comparison{path: strings.Split(field, "."), operator: operator, value: value}
	if operator == "eq" || operator == "ne" {
		pattern, err := regexp.Compile("^(?:" + value + ")$")
		if err != nil {
			return nil, fmt.Errorf("reading the regular expression %q: %w", value, err)
		}
		c.pattern = pattern
	}
	return c, nil
}

func (c comparison) holds(fields any) bool {
	values := valuesAt(fields, c.path)
	if c.operator == "!=" || c.operator == "ne" {
		for _, value := range values {
			if c.isEqual(value) {
				return false
			}
		}
		return true
	}
	for _, value := range values {
		if c.compare(value) {
			return true
		}
	}
	return false
}

func (c comparison) compare(value string) bool {
	switch c.operator {
	case "=", "eq":
		return c.isEqual(value)
	case ":":
		return c.has(value)
	}
	order := strings.Compare(value, c.value)
	left, leftErr := strconv.ParseFloat(value, 64)
	right, rightErr := strconv.ParseFloat(c.value, 64)
	if leftErr == nil && rightErr == nil {
		order = 0
		if left != right {
			order = map[bool]int{true: -1, false: 1}[left < right]
		}
	}
	switch c.operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	default:
		return order >= 0
	}
}

func (c comparison) isEqual(value string) bool {
	if c.pattern != nil {
		return c.pattern.MatchString(value)
	}
	return value == c.value || strings.Contains(c.value, "*") && wildcard(c.value).MatchString(value)
}

// has is the operator ":": a star asks whether there is a value at all, and a word is
// looked for anywhere.
func (c comparison) has(value string) bool {
	if c.value == "*" {
		return true
	}
	return wildcard("*" + c.value + "*").MatchString(value)
}

func wildcard(pattern string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$")
}

// valuesAt are the values at a path: those of all items, where it goes through a list.
func valuesAt(fields any, path []string) []string {
	switch known := fields.(type) {
	case map[string]any:
		if len(path) == 0 {
			return []string{""} // there is something
		}
		inner, found := known[path[0]]
		if !found {
			return nil
		}
		return valuesAt(inner, path[1:])
	case []any:
		var values []string
		for _, item := range known {
			values = append(values, valuesAt(item, path)...)
		}
		return values
	}
	if len(path) > 0 {
		return nil
	}
	return []string{fmt.Sprint(fields)}
}
