package wire

import "strings"

// list is the answer of each method that lists: Google's forms differ in their items alone.
type list struct {
	ID            string `json:"id"`
	Items         any    `json:"items,omitempty"`
	Kind          string `json:"kind"`
	NextPageToken string `json:"nextPageToken,omitempty"`
	SelfLink      string `json:"selfLink"`
}

// List answers with the page of these resources that a client asked for. The kind is
// without "compute#"; the id is a path.
func List[T any](r *Request, kind, id string, all []Listed[T]) (any, error) {
	page, next, err := paged(r, all)
	if err != nil {
		return nil, err
	}
	answer := list{Kind: "compute#" + kind, ID: id, NextPageToken: next, SelfLink: r.Link(id)}
	if items := itemsOf(page); items != nil {
		answer.Items = items
	}
	return answer, nil
}

// AggregatedList answers with such a page by scope. A scope that has nothing on the page
// carries a warning.
func AggregatedList[T any](r *Request, kind, collection string, scopes []string, all []Listed[T]) (any, error) {
	page, next, err := paged(r, all)
	if err != nil {
		return nil, err
	}
	byScope := map[string][]Listed[T]{}
	for _, one := range page {
		byScope[one.Scope] = append(byScope[one.Scope], one)
	}
	items := map[string]map[string]any{}
	for _, scope := range scopes {
		here := itemsOf(byScope[scope])
		switch zone, of := strings.CutPrefix(scope, "zones/"); {
		case of && r.IsSilent != nil && r.IsSilent(zone):
			items[scope] = map[string]any{"warning": unreachable(scope)}
		case here != nil:
			items[scope] = map[string]any{collection: here}
		default:
			items[scope] = map[string]any{"warning": noResults(scope)}
		}
	}
	id := ProjectPath(r.Project) + "/aggregated/" + collection
	return list{Kind: "compute#" + kind, ID: id, Items: items, NextPageToken: next, SelfLink: r.Link(id)}, nil
}

func itemsOf[T any](page []Listed[T]) (items []T) {
	for _, one := range page {
		items = append(items, one.Item)
	}
	return items
}

// warning is Google's form of one, in the order of its fields.
type warning struct {
	Code    string      `json:"code"`
	Data    []parameter `json:"data"`
	Message string      `json:"message"`
}

type parameter struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func noResults(scope string) warning {
	return warning{
		Code: "NO_RESULTS_ON_PAGE", Data: []parameter{{Key: "scope", Value: scope}},
		Message: "There are no results for scope '" + scope + "' on this page.",
	}
}

func unreachable(scope string) warning {
	return warning{
		Code: "UNREACHABLE", Data: []parameter{{Key: "scope", Value: scope}},
		Message: "The scope '" + scope + "' could not be reached.",
	}
}
