package program

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/cache"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// allowedFor and deniedFor are how long an answer of the API server holds.
	allowedFor, deniedFor = time.Minute, 10 * time.Second
	// maxAnswers is how many answers are kept.
	maxAnswers = 256
	// askTimeout is how long the API server may take.
	askTimeout = 10 * time.Second
)

// ByOwnToken is a filter that serves metrics to clients which the cluster lets GET the path.
// It asks the API server with the client's own bearer token (SelfSubjectAccessReview). So
// this program needs no right to ask what other users may do.
func ByOwnToken(config *rest.Config, _ *http.Client) (metricsserver.Filter, error) {
	client, err := authorizationclient.NewForConfig(rest.AnonymousClientConfig(config))
	if err != nil {
		return nil, err
	}
	filter := &filter{client: client.RESTClient(), answers: cache.NewLRUExpireCache(maxAnswers)}
	return func(log logr.Logger, handler http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			status, err := filter.statusFor(request)
			if err != nil {
				log.Error(err, "asking the API server whether a client may read metrics")
			}
			if status != http.StatusOK {
				http.Error(w, http.StatusText(status), status)
				return
			}
			handler.ServeHTTP(w, request)
		}), nil
	}, nil
}

// filter serves metrics to clients that may read them.
type filter struct {
	client  rest.Interface
	answers *cache.LRUExpireCache
}

// reviewKey identifies a review, without the token itself.
type reviewKey struct {
	token        [sha256.Size]byte
	method, path string
}

// statusFor is 200 for a request that is to be served.
func (r *filter) statusFor(request *http.Request) (int, error) {
	token, isBearer := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
	if !isBearer || token == "" {
		return http.StatusUnauthorized, nil
	}
	key := reviewKey{sha256.Sum256([]byte(token)), request.Method, request.URL.Path}
	if known, found := r.answers.Get(key); found {
		return known.(int), nil
	}
	status, err := r.review(request.Context(), token, key)
	switch {
	case err != nil:
		return http.StatusServiceUnavailable, err
	case status == http.StatusOK:
		r.answers.Add(key, status, allowedFor)
	default:
		r.answers.Add(key, status, deniedFor)
	}
	return status, nil
}

// review asks the API server, with the client's token.
func (r *filter) review(ctx context.Context, token string, key reviewKey) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: key.path, Verb: strings.ToLower(key.method)},
	}}
	err := r.client.Post().Resource("selfsubjectaccessreviews").SetHeader("Authorization", "Bearer "+token).
		Body(review).Do(ctx).Into(review)
	switch {
	case apierrors.IsUnauthorized(err):
		return http.StatusUnauthorized, nil
	case apierrors.IsForbidden(err):
		return http.StatusForbidden, nil
	case err != nil:
		return 0, err
	case review.Status.Allowed:
		return http.StatusOK, nil
	default:
		return http.StatusForbidden, nil
	}
}
