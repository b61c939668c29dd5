package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/nodemanager/content"
)

// issuer makes tokens with numbers, of no longer life than it grants.
type issuer struct {
	*world
	grants time.Duration
	asked  []*authenticationv1.TokenRequest
	err    error
}

func newIssuer(t *testing.T, grants time.Duration) *issuer {
	t.Helper()
	i := &issuer{world: newWorld(t), grants: grants}
	i.spoilt.SubResourceCreate = func(_ context.Context, _ client.Client, _ string, _, sub client.Object, _ ...client.SubResourceCreateOption) error {
		if i.err != nil {
			return i.err
		}
		request := sub.(*authenticationv1.TokenRequest)
		i.asked = append(i.asked, request.DeepCopy())
		granted := min(*request.Spec.ExpirationSeconds, int64(i.grants.Seconds()))
		request.Spec.ExpirationSeconds = &granted
		request.Status.Token = fmt.Sprintf("token-%d", len(i.asked))
		request.Status.ExpirationTimestamp = metav1.NewTime(i.clock.Now().Add(time.Duration(granted) * time.Second))
		return nil
	}
	return i
}

// token is what a pod shows of the issuer's.
func (i *issuer) token(t *testing.T, pod *corev1.Pod, audience string, life time.Duration) content.Token {
	t.Helper()
	token, err := i.Token(t.Context(), pod, projectionOf(audience, life))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func projectionOf(audience string, life time.Duration) *corev1.ServiceAccountTokenProjection {
	return &corev1.ServiceAccountTokenProjection{Audience: audience, ExpirationSeconds: new(int64(life.Seconds())), Path: "token"}
}

//proves:projected/serviceAccountToken
func TestATokenIsThePodsAlone(t *testing.T) {
	i := newIssuer(t, time.Hour)
	i.token(t, first, "vault", time.Hour)
	spec := i.asked[0].Spec
	want := authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: first.Name, UID: first.UID}
	if *spec.BoundObjectRef != want || len(spec.Audiences) != 1 || spec.Audiences[0] != "vault" || *spec.ExpirationSeconds != 3600 {
		t.Errorf("asked for %+v", spec)
	}
}

func TestATokenIsAskedForOncePerPodAudienceAndLife(t *testing.T) {
	i := newIssuer(t, 2*time.Hour)
	for range 3 {
		i.token(t, first, "vault", time.Hour)
		i.token(t, first, "vault", 2*time.Hour)
		i.token(t, first, "", time.Hour)
		i.token(t, second, "vault", time.Hour)
	}
	if len(i.asked) != 4 {
		t.Errorf("%d tokens were asked for", len(i.asked))
	}
}

//proves:projected/serviceAccountToken
func TestATokenIsRenewedBeforeItExpires(t *testing.T) {
	tests := map[string]struct{ asked, granted, renewed time.Duration }{
		"an hour's":                    {time.Hour, 24 * time.Hour, 48 * time.Minute},
		"one whose life was shortened": {time.Hour, 10 * time.Minute, 8 * time.Minute},
		"a month's":                    {30 * 24 * time.Hour, 30 * 24 * time.Hour, 24 * time.Hour},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			i := newIssuer(t, test.granted)
			token := i.token(t, first, "", test.asked)
			after := token.Renew.Sub(i.clock.Now())
			if after > test.renewed || after < test.renewed-renewJitter {
				t.Errorf("it is renewed after %s", after)
			}
			i.clock.Step(test.renewed - renewJitter - time.Second)
			if again := i.token(t, first, "", test.asked); again != token {
				t.Error("it was renewed too early")
			}
			i.clock.Step(renewJitter + time.Second)
			if again := i.token(t, first, "", test.asked); again.Value != "token-2" {
				t.Errorf("it shows %s", again.Value)
			}
		})
	}
}

func TestATokenIsRenewedInTimeThoughTheNodesClockIsWrong(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"ahead": 2 * time.Hour, "behind": -2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			request := &authenticationv1.TokenRequest{
				Spec:   authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(3600))},
				Status: authenticationv1.TokenRequestStatus{ExpirationTimestamp: metav1.NewTime(now.Add(time.Hour))},
			}
			clock := now.Add(ahead)
			token := lifeOf(request, clock)
			if after := token.Renew.Sub(clock); after < 47*time.Minute || after > 48*time.Minute {
				t.Errorf("it is renewed after %s", after)
			}
		})
	}
}

func TestAnOldTokenIsKeptUntilItExpiresWhileRenewalsFail(t *testing.T) {
	i := newIssuer(t, time.Hour)
	i.token(t, first, "", time.Hour)
	i.err = errDown
	i.clock.Step(48 * time.Minute)

	token := i.token(t, first, "", time.Hour)
	if token.Value != "token-1" || token.Renew.Sub(i.clock.Now()) != tokenRetry {
		t.Errorf("got %+v", token)
	}

	i.clock.Step(12 * time.Minute)
	_, err := i.Token(t.Context(), first, projectionOf("", time.Hour))
	if !errors.Is(err, errDown) || strings.Contains(err.Error(), "token-1") {
		t.Errorf("got %v", err)
	}
	i.err = nil
	if token := i.token(t, first, "", time.Hour); token.Value != "token-2" {
		t.Errorf("it shows %s", token.Value)
	}
}

func TestTokensAreForgottenWithTheirPod(t *testing.T) {
	i := newIssuer(t, time.Hour)
	i.token(t, first, "", time.Hour)
	i.token(t, second, "", time.Hour)

	i.Forget(first.UID)

	if _, has := i.tokens.pods[first.UID]; has || len(i.tokens.pods) != 1 {
		t.Errorf("left: %d pods", len(i.tokens.pods))
	}
}

func TestWhyThereIsNoToken(t *testing.T) {
	resource := schema.GroupResource{Resource: "serviceaccounts"}
	tests := map[string]struct {
		err                error
		missing, forbidden bool
	}{
		"its account doesn't exist":      {apierrors.NewNotFound(resource, "robot"), true, false},
		"the pod isn't known to be here": {apierrors.NewForbidden(resource, "robot", errDown), true, true},
		"the API server is down":         {errDown, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			i := newIssuer(t, time.Hour)
			i.err = test.err
			_, err := i.Token(t.Context(), first, projectionOf("", time.Hour))
			if err == nil || errors.Is(err, content.ErrMissing) != test.missing || apierrors.IsForbidden(err) != test.forbidden {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAPodWithoutAServiceAccountIsAnError(t *testing.T) {
	i, pod := newIssuer(t, time.Hour), podOf("1")
	pod.Spec.ServiceAccountName = ""
	if _, err := i.Token(t.Context(), pod, projectionOf("", time.Hour)); err == nil || !strings.Contains(err.Error(), "set spec.serviceAccountName") {
		t.Errorf("got %v", err)
	}
}
