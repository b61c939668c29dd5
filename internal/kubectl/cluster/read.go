package cluster

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/kubectl/output"
)

// pageSize is how many objects one request lists.
const pageSize = 500

// Presence is what a read found.
type Presence int

// Presences. Unreadable: the user has no right to read the object, so it may exist or not.
const (
	Absent Presence = iota
	Found
	Unreadable
)

// Get reads one object. An object that is missing, also because the cluster doesn't know its
// kind, is no error.
func (c *Cluster) Get(ctx context.Context, key client.ObjectKey, object client.Object) (Presence, error) {
	reader, err := c.Client()
	if err != nil {
		return Absent, err
	}
	err = reader.Get(ctx, key, object)
	switch {
	case err == nil:
		return Found, nil
	case apierrors.IsNotFound(err) || isUnknownKind(err):
		return Absent, nil
	case apierrors.IsForbidden(err):
		return Unreadable, nil
	default:
		return Absent, fmt.Errorf("reading %s %s: %w", kindOf(object), key, err)
	}
}

// List reads objects in pages, at most MostObjects. A kind that the cluster doesn't know has
// none. What couldn't be read is a note on the error stream, and no error: the rest is still
// worth printing.
func (c *Cluster) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	reader, err := c.Client()
	if err != nil {
		return err
	}
	err = pages(ctx, reader, list, c.MostObjects, options)
	switch {
	case isUnknownKind(err):
		return nil
	case apierrors.IsForbidden(err):
		c.Note("%s objects are left out: you may not list them. Ask an administrator for the right to list them", kindOf(list))
		return nil
	case err != nil:
		return fmt.Errorf("listing %s: %w", kindOf(list), err)
	}
	if list.GetContinue() != "" {
		c.Note("only the first %d %s objects were read: raise --max-objects to read all", c.MostObjects, kindOf(list))
	}
	return nil
}

// Note prints a remark beside the output.
func (c *Cluster) Note(format string, arguments ...any) {
	fmt.Fprintln(c.Streams.ErrOut, output.Escape("Note: "+fmt.Sprintf(format, arguments...)+"."))
}

// pages fills list page by page. Its continue token stays set if objects were left out.
func pages(ctx context.Context, reader client.Reader, list client.ObjectList, most int64, options []client.ListOption) error {
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	all, token := reflect.Zero(items.Type()), ""
	for {
		size := min(pageSize, most-int64(all.Len()))
		page := append([]client.ListOption{client.Limit(size), client.Continue(token)}, options...)
		items.SetZero()
		if err := reader.List(ctx, list, page...); err != nil {
			return err
		}
		all = reflect.AppendSlice(all, items)
		token = list.GetContinue()
		if token == "" || int64(all.Len()) >= most {
			items.Set(all)
			return nil
		}
	}
}

// isUnknownKind reports whether the cluster doesn't serve a kind.
func isUnknownKind(err error) bool { return meta.IsNoMatchError(err) }

// kindOf is the kind of an object, or that of the objects in a list.
func kindOf(object any) string {
	return strings.TrimSuffix(reflect.TypeOf(object).Elem().Name(), "List")
}
