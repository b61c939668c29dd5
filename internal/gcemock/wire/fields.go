package wire

import (
	"encoding/json"
	"net/http"
	"strings"
)

// selection is what parameter fields selects: the parts of each named field, or all of
// the field where it names no parts. Name * stands for every field.
type selection map[string]selection

// parseFields reads parameter fields. Empty: the selection of all fields.
func parseFields(text string) (selection, error) {
	if text == "" {
		return nil, nil
	}
	parser := fieldsParser{rest: text}
	wanted, err := parser.list()
	if err == nil && parser.rest != "" {
		err = errFields(text)
	}
	return wanted, err
}

// From reduces an answer to the selected fields.
func (s selection) From(answer any) (any, error) {
	if len(s) == 0 {
		return answer, nil
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	var whole any
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, err
	}
	return s.of(whole), nil
}

func errFields(fields string) error {
	return &Error{
		Status: http.StatusBadRequest, Reason: "invalidParameter", Message: "Invalid field selection " + fields,
	}
}

// of returns the selected parts of a value; in a list, those of each item.
func (s selection) of(value any) any {
	if len(s) == 0 {
		return value
	}
	switch known := value.(type) {
	case []any:
		items := make([]any, 0, len(known))
		for _, item := range known {
			items = append(items, s.of(item))
		}
		return items
	case map[string]any:
		kept := map[string]any{}
		for name, inner := range known {
			parts, wanted := s[name]
			if !wanted {
				parts, wanted = s["*"]
			}
			if wanted {
				kept[name] = parts.of(inner)
			}
		}
		return kept
	default:
		return value
	}
}

// fieldsParser reads a selection such as items(id,disks/source),nextPageToken.
type fieldsParser struct{ rest string }

func (p *fieldsParser) list() (selection, error) {
	wanted := selection{}
	for {
		if err := p.field(wanted); err != nil {
			return nil, err
		}
		if !p.next(',') {
			return wanted, nil
		}
	}
}

// field reads one field with its parts, and adds it.
func (p *fieldsParser) field(to selection) error {
	end := strings.IndexAny(p.rest, ",/()")
	if end < 0 {
		end = len(p.rest)
	}
	name := strings.TrimSpace(p.rest[:end])
	if name == "" {
		return errFields(p.rest)
	}
	p.rest = p.rest[end:]
	parts, known := to[name]
	switch {
	case p.next('/'):
		inner := selection{}
		if err := p.field(inner); err != nil {
			return err
		}
		to[name] = parts.with(inner, known)
	case p.next('('):
		inner, err := p.list()
		if err == nil && !p.next(')') {
			err = errFields(p.rest)
		}
		if err != nil {
			return err
		}
		to[name] = parts.with(inner, known)
	default:
		to[name] = selection{}
	}
	return nil
}

// with adds parts of a field to those already selected. A field that is selected whole
// stays whole.
func (s selection) with(more selection, known bool) selection {
	if !known {
		return more
	}
	if len(s) == 0 {
		return s
	}
	for name, parts := range more {
		before, known := s[name]
		if len(parts) == 0 {
			s[name] = parts
		} else {
			s[name] = before.with(parts, known)
		}
	}
	return s
}

func (p *fieldsParser) next(wanted byte) bool {
	if p.rest == "" || p.rest[0] != wanted {
		return false
	}
	p.rest = p.rest[1:]
	return true
}
