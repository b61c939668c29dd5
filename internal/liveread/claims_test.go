package liveread

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// served is an API server that counts the reads, and fails them while there is an error.
type served struct {
	client.Client
	reads int
	fails error
}

func serve(objects ...client.Object) *served {
	s := &served{}
	s.Client = fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, of client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			s.reads++
			if s.fails != nil {
				return s.fails
			}
			return of.Get(ctx, key, object, options...)
		},
	}).Build()
	return s
}

func reference(name, uid string) *corev1.ObjectReference {
	claim := Claim(ClaimNamed(name), ClaimUID(uid))
	return &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
}

func mustBeGone(t *testing.T, claims *Claims, ref *corev1.ObjectReference, isGone bool) {
	t.Helper()
	if claim, err := claims.Of(t.Context(), ref); err != nil || claim == nil != isGone {
		t.Errorf("claim %s of uid %s is %v (%v)", ref.Name, ref.UID, claim, err)
	}
}

func TestAClaimThatIsThereIsReadEachTime(t *testing.T) {
	server := serve(Claim(ClaimNamed("data"), ClaimUID("a")))
	claims := newClaims(server)
	mustBeGone(t, claims, reference("data", "a"), false)
	mustBeGone(t, claims, reference("data", "a"), false)
	if server.reads != 2 {
		t.Errorf("it was read %d times", server.reads)
	}
}

func TestAClaimThatIsGoneIsReadOnce(t *testing.T) {
	server := serve(Claim(ClaimNamed("again"), ClaimUID("new")))
	claims := newClaims(server)
	for _, ref := range []*corev1.ObjectReference{reference("data", "a"), reference("again", "old")} {
		server.reads = 0
		mustBeGone(t, claims, ref, true)
		mustBeGone(t, claims, ref, true)
		if server.reads != 1 {
			t.Errorf("claim %s was read %d times", ref.Name, server.reads)
		}
	}
}

func TestAClaimThatIsGoneIsReadAgainAfterAMinute(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	server := serve()
	claims := newClaims(server)
	claims.gone = expiring.NewLRUExpireCacheWithClock(maxGone, clock)
	mustBeGone(t, claims, reference("data", "a"), true)
	restored := Claim(ClaimNamed("data"), ClaimUID("a"))
	if err := server.Create(t.Context(), restored); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(clock.Now().Add(goneFor + 1))
	mustBeGone(t, claims, reference("data", "a"), false)
}

func TestOnlyThatVeryClaimIsGone(t *testing.T) {
	claims := newClaims(serve(Claim(ClaimNamed("again"), ClaimUID("new")), Claim(ClaimNamed("other"), ClaimUID("old"))))
	mustBeGone(t, claims, reference("again", "old"), true)
	mustBeGone(t, claims, reference("again", "new"), false)
	mustBeGone(t, claims, reference("other", "old"), false)
}

func TestAReadThatFailsSaysNothing(t *testing.T) {
	server := serve(Claim(ClaimNamed("data"), ClaimUID("a")))
	claims := newClaims(server)
	server.fails = errors.New("no connection")
	if _, err := claims.Of(t.Context(), reference("data", "a")); !errors.Is(err, server.fails) {
		t.Errorf("the error is %v", err)
	}
	server.fails = nil
	mustBeGone(t, claims, reference("data", "a"), false)
}

// watched is a cache whose one handler of claims the test calls.
type watched struct {
	client.Reader
	ctrlcache.Informer
	handler toolscache.ResourceEventHandler
}

func (w *watched) GetInformer(context.Context, client.Object, ...ctrlcache.InformerGetOption) (ctrlcache.Informer, error) {
	return w, nil
}

func (w *watched) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	w.handler = handler
	return nil, nil
}

func follow(t *testing.T, claims *Claims) toolscache.ResourceEventHandler {
	t.Helper()
	of := &watched{}
	if err := claims.follow(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	return of.handler
}

func TestAClaimWhoseDeletionIsWatchedIsNotRead(t *testing.T) {
	server := serve(Claim(ClaimNamed("data"), ClaimUID("new")))
	claims := newClaims(server)
	follow(t, claims).OnDelete(Claim(ClaimNamed("data"), ClaimUID("old")))
	mustBeGone(t, claims, reference("data", "old"), true)
	if server.reads != 0 {
		t.Errorf("it was read %d times", server.reads)
	}
	mustBeGone(t, claims, reference("data", "new"), false)
}

// The list may come from an API server that is behind the claim's creation.
func TestAClaimThatAListLacksIsRead(t *testing.T) {
	claim := Claim(ClaimNamed("data"), ClaimUID("a"))
	claims := newClaims(serve(claim))
	follow(t, claims).OnDelete(toolscache.DeletedFinalStateUnknown{Key: "default/data", Obj: claim})
	mustBeGone(t, claims, reference("data", "a"), false)
}
