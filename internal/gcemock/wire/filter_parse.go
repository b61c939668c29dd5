package wire

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// parseFilter reads a filter. A filter is comparisons, joined by AND and OR, which binds tighter,
// or just put side by side in parentheses, and turned around by NOT.
func parseFilter(text string) (filter, error) {
	if strings.TrimSpace(text) == "" {
		return filter{}, nil
	}
	tokens, err := splitFilter(text)
	if err == nil {
		parser := filterParser{tokens: tokens}
		var root condition
		if root, err = parser.expression(); err == nil && len(parser.tokens) > 0 {
			err = fmt.Errorf("%q is not expected", parser.tokens[0].text)
		}
		if err == nil {
			return filter{root: root}, nil
		}
	}
	return filter{}, Invalid("filter", text, "Invalid list filter expression: "+err.Error()+".")
}

// filterToken is a word, an operator or a parenthesis of a filter.
type filterToken struct {
	text   string
	quoted bool
}

const filterOperators = "=!<>:()"

// splitFilter splits a filter into its words.
func splitFilter(text string) ([]filterToken, error) {
	var tokens []filterToken
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimLeftFunc(text, unicode.IsSpace) {
		size := 1
		switch first := text[0]; {
		case first == '"' || first == '\'':
			end := strings.IndexByte(text[1:], first)
			if end < 0 {
				return nil, errors.New("a quote isn't closed")
			}
			tokens = append(tokens, filterToken{text: text[1 : 1+end], quoted: true})
			text = text[end+2:]
			continue
		case strings.HasPrefix(text, "!=") || strings.HasPrefix(text, "<=") || strings.HasPrefix(text, ">="):
			size = 2
		case !strings.ContainsRune(filterOperators, rune(first)):
			size = strings.IndexFunc(text, func(r rune) bool {
				return unicode.IsSpace(r) || strings.ContainsRune(filterOperators, r)
			})
			if size < 0 {
				size = len(text)
			}
		}
		tokens = append(tokens, filterToken{text: text[:size]})
		text = text[size:]
	}
	return tokens, nil
}

type filterParser struct{ tokens []filterToken }

// next takes the next token, if it is one of these; any, if none are named.
func (p *filterParser) next(wanted ...string) (filterToken, bool) {
	if len(p.tokens) == 0 {
		return filterToken{}, false
	}
	first := p.tokens[0]
	found := len(wanted) == 0
	for _, one := range wanted {
		found = found || !first.quoted && first.text == one
	}
	if found {
		p.tokens = p.tokens[1:]
	}
	return first, found
}

// expression is alternatives that all must hold.
func (p *filterParser) expression() (condition, error) {
	all, err := p.alternatives()
	for err == nil && len(p.tokens) > 0 && p.tokens[0].text != ")" {
		p.next("AND")
		var more condition
		if more, err = p.alternatives(); err == nil {
			all = both{all, more}
		}
	}
	return all, err
}

// alternatives are terms of which one must hold.
func (p *filterParser) alternatives() (condition, error) {
	one, err := p.term()
	for err == nil {
		if _, found := p.next("OR"); !found {
			break
		}
		var more condition
		if more, err = p.term(); err == nil {
			one = either{one, more}
		}
	}
	return one, err
}

func (p *filterParser) term() (condition, error) {
	if _, found := p.next("NOT"); found {
		inner, err := p.term()
		return not{inner}, err
	}
	if _, found := p.next("("); !found {
		return p.comparison()
	}
	inner, err := p.expression()
	if _, closed := p.next(")"); err == nil && !closed {
		err = errors.New("a parenthesis isn't closed")
	}
	return inner, err
}

func (p *filterParser) comparison() (condition, error) {
	field, found := p.next()
	if !found || strings.ContainsAny(field.text, filterOperators) && !field.quoted {
		return nil, errors.New("a field is expected")
	}
	operator, found := p.next("=", "!=", "<", "<=", ">", ">=", ":", "eq", "ne")
	if !found {
		return nil, fmt.Errorf("an operator is expected after %q", field.text)
	}
	value, found := p.next()
	if !found {
		return nil, fmt.Errorf("a value is expected after %q", field.text+" "+operator.text)
	}
	name, negated := strings.CutPrefix(field.text, "-")
	compared, err := newComparison(name, operator.text, p.rest(value))
	if negated && err == nil {
		return not{compared}, nil
	}
	return compared, err
}

// rest completes a value that has colons or parentheses of its own, as URLs and
// regular expressions do; elsewhere they end it.
func (p *filterParser) rest(value filterToken) string {
	text := value.text
	for !value.quoted && len(p.tokens) > 0 && p.tokens[0].text == ":" {
		p.next()
		more, _ := p.next()
		text += ":" + more.text
	}
	return text
}
