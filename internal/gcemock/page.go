package gcemock

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

const (
	maxPage   = 500
	noResults = "NO_RESULTS_ON_PAGE"
)

func noResultsMessage(scope string) string {
	return "There are no results for scope '" + scope + "' on this page."
}

// listed is a resource in a list, with what lists are ordered by.
type listed[T any] struct {
	// scope is the zone or region, where a list goes across them.
	scope, name, created string
	item                 T
}

// paged picks what a client asked for: what the filter lets through, in order, from
// where the page before ended.
func paged[T any](r *request, all []listed[T]) (items []T, next string, err error) {
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
	var last listed[T]
	for _, one := range all {
		if after != nil && less(one, *after) <= 0 || !keep.holds(one.item) {
			continue
		}
		if len(items) == size {
			return items, token(last), nil
		}
		items, last = append(items, one.item), one
	}
	return items, "", nil
}

func pageSize(text string) (int, error) {
	if text == "" || text == "0" {
		return maxPage, nil
	}
	size, err := strconv.Atoi(text)
	if err != nil || size < 0 || size > maxPage {
		return 0, errInvalid("maxResults", text, "Must be between 0 and 500, inclusive.")
	}
	return size, nil
}

func order[T any](by string) (func(a, b listed[T]) int, error) {
	byName := func(a, b listed[T]) int {
		return cmp.Or(cmp.Compare(a.scope, b.scope), cmp.Compare(a.name, b.name))
	}
	switch by {
	case "", "name":
		return byName, nil
	case "creationTimestamp desc":
		return func(a, b listed[T]) int { return cmp.Or(cmp.Compare(b.created, a.created), byName(a, b)) }, nil
	default:
		return nil, errInvalid("orderBy", by, "Only sorting by 'name' or 'creationTimestamp desc' is supported.")
	}
}

// A token names the last resource of a page. The next page begins after where it is,
// or was: nothing is seen twice or missed because of what came or went meanwhile.
func token[T any](last listed[T]) string {
	return base64.RawURLEncoding.EncodeToString([]byte(last.scope + "\n" + last.created + "\n" + last.name))
}

func readToken[T any](text string) (*listed[T], error) {
	if text == "" {
		return nil, nil
	}
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	parts := strings.Split(string(decoded), "\n")
	if err != nil || len(parts) != 3 {
		return nil, errInvalid("pageToken", text, "Invalid page token.")
	}
	return &listed[T]{scope: parts[0], created: parts[1], name: parts[2]}, nil
}
