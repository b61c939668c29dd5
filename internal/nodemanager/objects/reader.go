// Package objects reads what pods' volumes show from the API server, with the node's
// own credential, and follows it: the node manager asks it in each pass over a pod, and
// is told of whom there is something new.
//
// What a pod is given first was read for that pod, so that it is never older than the
// pod. After that, an object is watched, once however many pods show it, until the last
// of them goes. A node may do so with the configMaps and secrets of its pods, each by
// its name. Those that are immutable aren't watched.
//
// It never logs what it reads, and errors name objects, not what is in them.
package objects

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/nodemanager/content"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// readTimeout is how long the API server may take for an answer: one that hangs doesn't
// hold up the pods that need nothing new.
const readTimeout = 10 * time.Second

// Options are what a Reader is made of.
type Options struct {
	// NodeName is the node whose pods are read for.
	NodeName string
	// Live reads from the API server itself, and watches.
	Live client.WithWatch
	// Cached has the node.
	Cached client.Reader
	// Clock tells when tokens are to be renewed.
	Clock clock.PassiveClock
}

// Reader is a content.Reader for the pods of one node. Its methods may be called at
// once, but nothing is read for a pod while it is forgotten.
type Reader struct {
	Options
	tokens tokens
	turns  volumes.Turns

	mu      sync.Mutex
	objects map[key]*object
	changed func(types.UID)
	// ended: nothing is watched any more.
	ended   bool
	watches sync.WaitGroup
}

var _ content.Reader = &Reader{}

// New returns a Reader that watches nothing yet.
func New(options Options) *Reader {
	return &Reader{Options: options, objects: map[key]*object{}, changed: func(types.UID) {}}
}

// Run waits until the context ends, and ends all watches.
func (r *Reader) Run(ctx context.Context) error {
	<-ctx.Done()
	r.mu.Lock()
	r.ended = true
	for _, at := range r.objects {
		at.unwatch()
	}
	r.mu.Unlock()
	r.watches.Wait()
	return nil
}

// OnChange sets who is told of pods for which something changed. It must return at once,
// and not ask for anything.
func (r *Reader) OnChange(tell func(types.UID)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = tell
}

// Forget notes that a pod shows nothing any more. What no other one shows is forgotten,
// and not watched any more.
func (r *Reader) Forget(pod types.UID) {
	r.tokens.forget(pod)
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, at := range r.objects {
		delete(at.pods, pod)
		if len(at.pods) == 0 {
			at.unwatch()
			delete(r.objects, key)
		}
	}
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

// read is an object as a pod is to show it: read for the pod the first time, and then
// as its watch has it.
func (r *Reader) read(ctx context.Context, pod types.UID, of key) (client.Object, error) {
	_, seen, wasRead := r.want(pod, of)
	if !wasRead {
		var err error
		if seen, err = r.readOnce(ctx, pod, of); err != nil {
			return nil, err
		}
	}
	if seen == nil {
		return nil, fmt.Errorf("%s is %w: create it", of, content.ErrMissing)
	}
	return seen, nil
}

// readOnce reads an object for a pod, though several of its volumes ask for it at once.
func (r *Reader) readOnce(ctx context.Context, pod types.UID, of key) (client.Object, error) {
	release, err := r.turns.Acquire(ctx, string(pod)+" "+of.String())
	if err != nil {
		return nil, err
	}
	defer release()
	at, seen, wasRead := r.want(pod, of)
	if wasRead {
		return seen, nil
	}
	return r.readLive(ctx, pod, at)
}

// want notes that a pod shows an object, and says what is known of it. wasRead says
// whether it was read for this pod: only then may the pod be given what is known.
func (r *Reader) want(pod types.UID, of key) (at *object, seen client.Object, wasRead bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := r.objects[of]
	if !known {
		at = &object{key: of, reader: r, pods: map[types.UID]bool{}}
		r.objects[of] = at
	}
	if _, wanted := at.pods[pod]; !wanted {
		at.pods[pod] = false
	}
	return at, at.seen, at.pods[pod]
}

// readLive reads an object from the API server for a pod, and has it watched from then
// on, also if it is missing.
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

// wasRead notes what was read for a pod, and returns what is known by now, which may be
// newer.
func (r *Reader) wasRead(ctx context.Context, pod types.UID, at *object, read client.Object) client.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at.learn(read, read.GetResourceVersion()) {
		at.tell(pod)
	}
	at.pods[pod] = true
	if !isImmutable(at.seen) {
		at.watch(ctx)
	}
	return at.seen
}

// wasMissing notes that an object was missing for a pod. A watch that doesn't know that
// yet is behind: the pod isn't given what it has.
func (r *Reader) wasMissing(ctx context.Context, pod types.UID, at *object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at.pods[pod] = at.seen == nil
	at.watch(ctx)
}

// unreadable says that the API server doesn't let this node read something. It learns
// whose pods need it a moment later than the node.
func unreadable(what string, forbidden error) error {
	return fmt.Errorf("%s is %w, or isn't readable from this node yet: %w", what, content.ErrMissing, forbidden)
}
