package objects

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stowage-dev/stowage/internal/nodemanager/content"
)

const (
	// A token is renewed after renewPercent of its life, or after longestUse if that is sooner. The
	// renewal is up to renewJitter earlier, so that tokens issued together aren't renewed together.
	renewPercent = 80
	longestUse   = 24 * time.Hour
	renewJitter  = 10 * time.Second
	// tokenRetry is how soon a failed renewal is tried again, while the old token is valid.
	tokenRetry = 30 * time.Second
)

// tokens are the current tokens of pods, in memory only.
type tokens struct {
	live  client.Client
	clock clock.PassiveClock
	mu    sync.Mutex
	pods  map[types.UID]map[tokenKey]issued
}

type tokenKey struct {
	audience string
	seconds  int64
}

type issued struct {
	content.Token
	expires time.Time
}

func (t *tokens) find(pod types.UID, of tokenKey) (issued, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, has := t.pods[pod][of]
	return found, has
}

func (t *tokens) keep(pod types.UID, of tokenKey, token issued) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pods == nil {
		t.pods = map[types.UID]map[tokenKey]issued{}
	}
	if t.pods[pod] == nil {
		t.pods[pod] = map[tokenKey]issued{}
	}
	t.pods[pod][of] = token
}

func (t *tokens) forget(pod types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pods, pod)
}

// current returns the pod's token, and renews it in time. If that fails, it returns the old token
// until that expires.
func (t *tokens) current(ctx context.Context, pod *corev1.Pod, of tokenKey) (issued, error) {
	now := t.clock.Now()
	token, has := t.find(pod.UID, of)
	if has && now.Before(token.Renew) {
		return token, nil
	}
	renewed, err := t.issue(ctx, pod, of)
	switch {
	case err == nil:
		token = renewed
	case has && now.Before(token.expires):
		logf.FromContext(ctx).Error(err, "renewing a pod's token: it keeps the old one", "podUID", pod.UID)
		token.Renew = now.Add(tokenRetry)
	default:
		return issued{}, err
	}
	t.keep(pod.UID, of, token)
	return token, nil
}

// issue requests a token that is bound to the pod.
func (t *tokens) issue(ctx context.Context, pod *corev1.Pod, of tokenKey) (issued, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}}
	if account.Name == "" {
		return issued{}, fmt.Errorf("pod %s/%s has no service account to prove: set spec.serviceAccountName", pod.Namespace, pod.Name)
	}
	request := requestOf(pod, of)
	err := t.live.SubResource("token").Create(ctx, account, request)
	if err != nil {
		return issued{}, notIssued(account, err)
	}
	return lifeOf(request, t.clock.Now()), nil
}

func requestOf(pod *corev1.Pod, of tokenKey) *authenticationv1.TokenRequest {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Pod", Name: pod.Name, UID: pod.UID,
		},
	}}
	if of.audience != "" {
		request.Spec.Audiences = []string{of.audience}
	}
	if of.seconds > 0 {
		request.Spec.ExpirationSeconds = &of.seconds
	}
	return request
}

// notIssued is the error of a token request. The API server forbids one for a pod that it doesn't
// know to be on this node yet.
func notIssued(account *corev1.ServiceAccount, err error) error {
	what := "serviceAccount " + client.ObjectKeyFromObject(account).String()
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s is %w: create it", what, content.ErrMissing)
	case apierrors.IsForbidden(err):
		return unreadable("a token of "+what, err)
	default:
		return fmt.Errorf("asking for a token of %s: %w", what, err)
	}
}

// lifeOf returns a token with its times by this node's clock, which may differ from the API
// server's. The API server may have shortened its life.
func lifeOf(request *authenticationv1.TokenRequest, now time.Time) issued {
	life := request.Status.ExpirationTimestamp.Sub(now)
	if granted := time.Duration(ptr.Deref(request.Spec.ExpirationSeconds, 0)) * time.Second; granted > 0 && (life <= 0 || granted < life) {
		life = granted
	}
	use := min(life*renewPercent/100, longestUse) - rand.N(renewJitter)
	return issued{
		Token:   content.Token{Value: request.Status.Token, Renew: now.Add(use)},
		expires: now.Add(life),
	}
}
