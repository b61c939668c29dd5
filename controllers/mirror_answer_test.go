package controllers

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keepAnswers has the clients of a configuration keep the answer to a request whose context has a place for it. Clients decode
// the answer to a write into the object that they sent, and leave there what the answer hasn't.
func keepAnswers(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return answerKeeper{next} })
}

type answerKeeper struct{ next http.RoundTripper }

type answerKey struct{}

func (k answerKeeper) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := k.next.RoundTrip(request)
	answer, isWanted := request.Context().Value(answerKey{}).(*[]byte)
	if err != nil || !isWanted {
		return response, err
	}
	*answer, err = io.ReadAll(response.Body)
	response.Body = readBody{Reader: bytes.NewReader(*answer), Closer: response.Body}
	return response, err
}

// readBody is a body that was read: Close closes the connection's.
type readBody struct {
	io.Reader
	io.Closer
}

// write writes an object, and keeps what the server has of it after that.
func (m *mirror) write(ctx context.Context, object client.Object, send func(context.Context) error) error {
	var answer []byte
	if err := send(context.WithValue(ctx, answerKey{}, &answer)); err != nil {
		return err
	}
	switch current := m.decoded(object, answer); {
	case object.GetResourceVersion() == "": // a dry run made nothing
	case current == nil || isEnding(current):
		m.readAgain(ctx, object)
	case hasEnded(current):
		m.remove(current)
	default:
		m.put(current)
	}
	return nil
}

// delete deletes an object, and keeps what the server has of it after that.
func (m *mirror) delete(ctx context.Context, object client.Object, options []client.DeleteOption, send func(context.Context) error) error {
	var answer []byte
	before := m.stored(object)
	err := send(context.WithValue(ctx, answerKey{}, &answer))
	switch current := m.decoded(object, answer); {
	case err == nil && endsAtOnce(before, options):
		m.remove(before)
	case err == nil && current != nil && current.GetDeletionTimestamp() != nil && len(current.GetFinalizers()) > 0:
		m.put(current)
	default:
		m.readAgain(ctx, object)
	}
	return err
}

// decoded is the object that the server answered with, nil where it answered with something else.
func (m *mirror) decoded(sent client.Object, answer []byte) client.Object {
	decoded, _, err := m.decoder.Decode(answer, nil, nil)
	if err != nil || reflect.TypeOf(decoded) != reflect.TypeOf(sent) {
		return nil
	}
	decoded.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return decoded.(client.Object)
}

// hasEnded reports whether the answer to a write was the last state of an object: nothing kept it any more.
func hasEnded(object client.Object) bool {
	return object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0
}

// isEnding reports whether a deleted object may stay for a while without a finalizer.
func isEnding(object client.Object) bool {
	grace := object.GetDeletionGracePeriodSeconds()
	return hasEnded(object) && grace != nil && *grace > 0
}
