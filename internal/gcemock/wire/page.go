package wire

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

const maxPage = 500

// Listed is a resource in a list, with what lists are ordered by.
type Listed[T any] struct {
	// Scope is the zone or region, where a list goes across them.
	Scope, Name, Created string
	Item                 T
}

// paged returns what a client asked for: what the filter lets through, in order, from
// where the page before ended.
func paged[T any](r *Request, all []Listed[T]) (page []Listed[T], next string, err error) {
	query := r.URL.Query()
	keep, err := parseFilter(query.Get("filter"))
	if err != nil {
		return nil, "", err
	}
	size, err := pageSize(query.Get("maxResults"))
	if err != nil {
		return nil, "", err
	}
	less, err := order[T](query.Get("orderBy"))
	if err != nil {
		return nil, "", err
	}
	slices.SortFunc(all, less)
	after, err := readToken[T](query.Get("pageToken"))
	if err != nil {
		return nil, "", err
	}
	for _, one := range all {
		if after != nil && less(one, *after) <= 0 || !keep.holds(one.Item) {
			continue
		}
		if len(page) == size {
			return page, token(page[size-1]), nil
		}
		page = append(page, one)
	}
	return page, "", nil
}

func pageSize(text string) (int, error) {
	if text == "" || text == "0" {
		return maxPage, nil
	}
	size, err := strconv.Atoi(text)
	if err != nil || size < 0 || size > maxPage {
		return 0, Invalid("maxResults", text, "Must be between 0 and 500, inclusive.")
	}
	return size, nil
}

func order[T any](by string) (func(a, b Listed[T]) int, error) {
	byName := func(a, b Listed[T]) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Name, b.Name))
	}
	switch by {
	case "", "name":
		return byName, nil
	case "creationTimestamp desc":
		return func(a, b Listed[T]) int { return cmp.Or(cmp.Compare(b.Created, a.Created), byName(a, b)) }, nil
	default:
		return nil, Invalid("orderBy", by, "Only sorting by 'name' or 'creationTimestamp desc' is supported.")
	}
}

// A token names the last resource of a page. The next page begins after where it is, or
// was: resources that come or go between two pages make no duplicate and no gap.
func token[T any](last Listed[T]) string {
	return base64.RawURLEncoding.EncodeToString([]byte(last.Scope + "\n" + last.Created + "\n" + last.Name))
}

func readToken[T any](text string) (*Listed[T], error) {
	if text == "" {
		return nil, nil
	}
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	parts := strings.Split(string(decoded), "\n")
	if err != nil || len(parts) != 3 {
		return nil, Invalid("pageToken", text, "Invalid page token.")
	}
	return &Listed[T]{Scope: parts[0], Created: parts[1], Name: parts[2]}, nil
}
