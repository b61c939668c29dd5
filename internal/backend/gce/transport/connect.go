package transport

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/option"
	htransport "google.golang.org/api/transport/http"

	"github.com/stowage-dev/stowage/internal/backend"
)

const (
	userAgent = "stowage.dev"
	// idleConnections is how many stay open: calls come in bursts.
	idleConnections = 32
)

// ErrCredentials marks a call that was not sent for want of a token, ErrUnreachable one that was not
// sent for want of a connection.
var (
	ErrCredentials = errors.New("signing in")
	ErrUnreachable = errors.New("connecting")
)

// Login is where, and with what, calls are signed in.
type Login struct {
	// Endpoint ends with a slash; empty: Google's own.
	Endpoint string
	// Secret names the Secret with the key; empty: the machine's own identity.
	Secret string
}

// isPlain reports whether the endpoint needs no signing in unless a key is named: a mock's.
func (l Login) isPlain() bool { return strings.HasPrefix(l.Endpoint, "http://") }

// Credentials describes the credentials for people.
func (l Login) Credentials() string {
	switch {
	case l.Secret != "":
		return "the key in Secret " + l.Secret
	case l.isPlain():
		return "a call without credentials"
	default:
		return "the machine's own identity"
	}
}

// Connect makes a client of the API. The client outlives the context.
func Connect(ctx context.Context, at Login, key []byte) (*compute.Service, error) {
	ctx = context.WithoutCancel(ctx)
	options := []option.ClientOption{option.WithScopes(compute.ComputeScope), option.WithUserAgent(userAgent)}
	switch {
	case at.Secret != "":
		// A key of another type could name programs to run and addresses to call.
		options = append(options, option.WithAuthCredentialsJSON(option.ServiceAccount, key))
	case at.isPlain():
		options = append(options, option.WithoutAuthentication())
	}
	signed, err := htransport.NewTransport(ctx, newWire(), options...)
	if at.Secret != "" && len(key) == 0 {
		// The client would use the machine's own identity.
		err = errors.New("it is empty")
	}
	switch {
	case err != nil && at.Secret != "":
		return nil, backend.Unavailable.Errorf("%s is no service account key: put one, as Google gives it out, into the Secret under key.json: %w",
			at.Credentials(), err)
	case err != nil:
		return nil, backend.Unavailable.Errorf("the manager has no identity of its own at Google: "+
			"set gce.credentialsSecret, or run the manager where Google gives it one: %w", err)
	}
	options = []option.ClientOption{option.WithHTTPClient(&http.Client{Transport: &pacer{next: &signer{next: signed}, now: time.Now}})}
	if at.Endpoint != "" {
		options = append(options, option.WithEndpoint(at.Endpoint))
	}
	service, err := compute.NewService(ctx, options...)
	if err != nil {
		return nil, backend.Invalid.Errorf("the client of the Compute API can't be made: look at gce.endpoint: %w", err)
	}
	return service, nil
}

// sent is the key under which the wire records, in a request's context, that the request was signed.
type sent struct{}

// signer distinguishes errors of signing in from those of the call itself.
type signer struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s *signer) RoundTrip(request *http.Request) (*http.Response, error) {
	signed := &atomic.Bool{}
	answer, err := s.next.RoundTrip(request.WithContext(context.WithValue(request.Context(), sent{}, signed)))
	if err != nil && !signed.Load() {
		return nil, errors.Join(ErrCredentials, err)
	}
	return answer, err
}

// wire carries requests that are signed.
type wire struct{ next http.RoundTripper }

func newWire() *wire {
	plain := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: idleConnections}
	plain.DialContext = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	plain.TLSHandshakeTimeout = 10 * time.Second
	plain.IdleConnTimeout = 90 * time.Second
	return &wire{next: plain}
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	if signed, has := request.Context().Value(sent{}).(*atomic.Bool); has {
		signed.Store(true)
	}
	answer, err := w.next.RoundTrip(request)
	var dialing *net.OpError
	if errors.As(err, &dialing) && dialing.Op == "dial" {
		return nil, errors.Join(ErrUnreachable, err)
	}
	return answer, err
}
