// Package objects reads the objects that pods' volumes project from the API server, with the
// node's own credential, and watches them. The node manager reads in each pass over a pod, and
// gets a call for each pod whose objects changed.
//
// The first read for a pod is live, so that its content is never older than the pod. After that,
// an object has one watch for all pods that project it. A node may watch the configMaps and
// secrets of its pods, each by its name. Immutable ones aren't watched.
//
// It never logs what it reads. Errors contain the names of objects, and never their data.
package objects

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/keyed"
	"github.com/stowage-dev/stowage/internal/nodemanager/content"
)

// Options are what a Reader is made of.
type Options struct {
	// NodeName is the pods' node.
	NodeName string
	// Live reads from the API server itself, and watches.
	Live client.WithWatch
	// Cached has the node.
	Cached client.Reader
	// Clock measures the life of tokens.
	Clock clock.PassiveClock
}

// Reader is a content.Reader for the pods of one node. Its methods may be called at once, but
// Forget not during a read for the same pod.
type Reader struct {
	Options
	tokens  tokens
	reads   keyed.Locks
	shared  *shared
	objects map[key]*object
}

var _ content.Reader = &Reader{}

// New returns a Reader that watches nothing yet.
func New(options Options) *Reader {
	return &Reader{
		Options: options, objects: map[key]*object{}, shared: &shared{live: options.Live, changed: func(types.UID) {}},
		tokens: tokens{live: options.Live, clock: options.Clock},
	}
}

// Run waits until the context ends, and ends all watches.
func (r *Reader) Run(ctx context.Context) error {
	<-ctx.Done()
	r.shared.mu.Lock()
	r.shared.ended = true
	for _, at := range r.objects {
		at.unwatch()
	}
	r.shared.mu.Unlock()
	r.shared.watches.Wait()
	return nil
}

// OnChange sets what is called with each pod whose objects changed. It must return at once, and
// not call the Reader.
func (r *Reader) OnChange(changed func(types.UID)) {
	r.shared.mu.Lock()
	defer r.shared.mu.Unlock()
	r.shared.changed = changed
}

// Forget drops a pod whose volumes project nothing any more. An object that no other pod projects
// is dropped, too, with its watch.
func (r *Reader) Forget(pod types.UID) {
	r.tokens.forget(pod)
	r.shared.mu.Lock()
	defer r.shared.mu.Unlock()
	for _, at := range r.objects {
		if _, projects := at.pods[pod]; !projects {
			continue
		}
		delete(at.pods, pod)
		switch {
		case len(at.pods) > 0:
		case at.isWatched:
			time.AfterFunc(lingers, func() { r.dropUnused(at) })
		default:
			r.drop(at)
		}
	}
}

// dropUnused drops an object unless a pod projects it again.
func (r *Reader) dropUnused(at *object) {
	r.shared.mu.Lock()
	defer r.shared.mu.Unlock()
	if len(at.pods) == 0 && r.objects[at.key] == at {
		r.drop(at)
	}
}

func (r *Reader) drop(at *object) {
	delete(r.objects, at.key)
	at.unwatch()
}

// ConfigMap implements content.Reader.
func (r *Reader) ConfigMap(ctx context.Context, pod *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	found, err := r.read(ctx, pod.UID, key{kind: configMap, namespace: pod.Namespace, name: name})
	if err != nil {
		return nil, err
	}
	return found.(*corev1.ConfigMap), nil
}

// Secret implements content.Reader.
func (r *Reader) Secret(ctx context.Context, pod *corev1.Pod, name string) (*corev1.Secret, error) {
	found, err := r.read(ctx, pod.UID, key{kind: secret, namespace: pod.Namespace, name: name})
	if err != nil {
		return nil, err
	}
	return found.(*corev1.Secret), nil
}

// Token implements content.Reader.
func (r *Reader) Token(ctx context.Context, pod *corev1.Pod, projection *corev1.ServiceAccountTokenProjection) (content.Token, error) {
	token, err := r.tokens.current(ctx, pod, tokenKey{projection.Audience, ptr.Deref(projection.ExpirationSeconds, 0)})
	return token.Token, err
}

// Node implements content.Reader.
func (r *Reader) Node(ctx context.Context) (*corev1.Node, error) {
	node := &corev1.Node{}
	err := r.Cached.Get(ctx, client.ObjectKey{Name: r.NodeName}, node)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("node %s is %w", r.NodeName, content.ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("reading node %s: %w", r.NodeName, err)
	}
	return node, nil
}

// read returns an object for a pod: read live the first time, and then from its watch.
func (r *Reader) read(ctx context.Context, pod types.UID, of key) (client.Object, error) {
	_, known, wasRead := r.want(pod, of)
	if !wasRead {
		var err error
		if known, err = r.readOnce(ctx, pod, of); err != nil {
			return nil, err
		}
	}
	if known == nil {
		return nil, fmt.Errorf("%s is %w: create it", of, content.ErrMissing)
	}
	return known, nil
}

// readOnce reads an object once for a pod, even if several of its volumes project it.
func (r *Reader) readOnce(ctx context.Context, pod types.UID, of key) (client.Object, error) {
	release, err := r.reads.Acquire(ctx, string(pod)+" "+of.String())
	if err != nil {
		return nil, err
	}
	defer release()
	at, known, wasRead := r.want(pod, of)
	if wasRead {
		return known, nil
	}
	return r.readLive(ctx, pod, at)
}

// want registers that a pod projects an object, and returns its known state. The pod may use that
// state only if the object was read for this pod.
func (r *Reader) want(pod types.UID, of key) (at *object, known client.Object, wasRead bool) {
	r.shared.mu.Lock()
	defer r.shared.mu.Unlock()
	at, exists := r.objects[of]
	if !exists {
		at = &object{key: of, shared: r.shared, pods: map[types.UID]bool{}}
		r.objects[of] = at
	}
	if _, wanted := at.pods[pod]; !wanted {
		at.pods[pod] = false
	}
	return at, at.known, at.pods[pod]
}

// readLive reads an object from the API server for a pod, and begins to watch it, even if it is
// missing.
func (r *Reader) readLive(ctx context.Context, pod types.UID, at *object) (client.Object, error) {
	inTime, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	read := at.kind.newObject()
	err := r.Live.Get(inTime, client.ObjectKey{Namespace: at.namespace, Name: at.name}, read)
	switch {
	case apierrors.IsNotFound(err):
		r.wasMissing(ctx, pod, at)
		return nil, nil
	case apierrors.IsForbidden(err):
		return nil, unreadable(at.String(), err)
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", at.key, err)
	}
	return r.wasRead(ctx, pod, at, read), nil
}

// wasRead records what was read for a pod, and returns the known state, which may be newer.
func (r *Reader) wasRead(ctx context.Context, pod types.UID, at *object, read client.Object) client.Object {
	r.shared.mu.Lock()
	defer r.shared.mu.Unlock()
	if at.update(read, read.GetResourceVersion()) {
		at.notify(pod)
	}
	at.pods[pod] = true
	if !isImmutable(at.known) {
		at.watch(ctx)
	}
	return at.known
}

// wasMissing records that an object is missing for a pod. A watch that still has the object is
// behind: the pod doesn't get its state.
func (r *Reader) wasMissing(ctx context.Context, pod types.UID, at *object) {
	r.shared.mu.Lock()
	defer r.shared.mu.Unlock()
	at.pods[pod] = at.known == nil
	at.watch(ctx)
}
