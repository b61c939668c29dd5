package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/story"
)

// tale is a story: its name, also that of its namespace, and who tells it.
type tale struct {
	name string
	tell func(*scene)
}

// scene is where a story is told: the bed, and a namespace that is the story's alone and
// goes with it.
type scene struct {
	*story.Story
	bed       *bed
	namespace string
}

// tell tells the stories of a group, at most mostAtOnce at once, and waits until all have
// ended.
func (b *bed) tell(ctx context.Context, group []tale) {
	group = slices.DeleteFunc(slices.Clone(group), func(one tale) bool { return !b.chosen.MatchString(one.name) })
	if b.story.Err() != nil || len(group) == 0 {
		return
	}
	fmt.Println()
	var all sync.WaitGroup
	turns := make(chan struct{}, mostAtOnce)
	for _, one := range group {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			b.tellOne(ctx, one)
		})
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		b.fail(err)
	}
}

// tellOne tells one story. Where one doesn't hold, the others go on, and what it made
// stays to be looked at.
func (b *bed) tellOne(ctx context.Context, one tale) {
	s := &scene{b.story.Part(ctx, one.name), b, one.name}
	if err := b.Client.Create(ctx, s.namespaceObject()); err != nil {
		b.fail(fmt.Errorf("%s: %w", one.name, err))
		return
	}
	one.tell(s)
	s.Do("all that it made goes", s.clear)
	if s.Err() != nil {
		b.fail(fmt.Errorf("%s: %w\n%s", one.name, s.Err(), s.told(context.WithoutCancel(ctx))))
	}
}

func (s *scene) namespaceObject() *corev1.Namespace {
	namespace := &corev1.Namespace{}
	namespace.Name = s.namespace
	return namespace
}

// clear removes the namespace, and waits until its pods and their volumes have gone. It
// goes a while after them, which left waits for.
func (s *scene) clear() error {
	volumes := &corev1.PersistentVolumeList{}
	err := errors.Join(s.bed.Client.List(s.Ctx, volumes), s.bed.Client.Delete(s.Ctx, s.namespaceObject()))
	for _, kind := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}} {
		err = errors.Join(err, s.bed.Client.DeleteAllOf(s.Ctx, kind, client.InNamespace(s.namespace)))
	}
	if err != nil {
		return err
	}
	for i := range volumes.Items {
		volume := &volumes.Items[i]
		if claim := volume.Spec.ClaimRef; claim == nil || claim.Namespace != s.namespace {
			continue
		}
		if err := s.gone(volume); err != nil {
			return err
		}
	}
	return s.soon(s.noPods)
}

func (s *scene) noPods() error {
	all := &corev1.PodList{}
	err := s.bed.Client.List(s.Ctx, all, client.InNamespace(s.namespace))
	if err == nil && len(all.Items) > 0 {
		err = fmt.Errorf("%d pods are there", len(all.Items))
	}
	return err
}

// Soon does something until it succeeds.
func (s *scene) Soon(what string, try func() error) {
	s.Do(what, func() error { return s.soon(try) })
}

func (s *scene) soon(try func() error) error { return story.Within(s.Ctx, patience, try) }

// get reads an object.
func (s *scene) get(object client.Object) error {
	return s.bed.Client.Get(s.Ctx, client.ObjectKeyFromObject(object), object)
}

// create creates objects.
func (s *scene) create(objects ...client.Object) error {
	for _, object := range objects {
		if err := s.bed.Client.Create(s.Ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// change changes an object, whoever else does, too.
func (s *scene) change(object client.Object, change func()) error {
	return s.soon(func() error {
		if err := s.get(object); err != nil {
			return err
		}
		change()
		return s.bed.Client.Update(s.Ctx, object)
	})
}

// remove deletes objects, and waits until they are gone.
func (s *scene) remove(objects ...client.Object) error {
	for _, object := range objects {
		if err := s.bed.Client.Delete(s.Ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %T %s: %w", object, object.GetName(), err)
		}
	}
	return s.gone(objects...)
}

// gone waits until objects are gone.
func (s *scene) gone(objects ...client.Object) error {
	for _, object := range objects {
		err := s.soon(func() error {
			if err := s.get(object); err != nil {
				return client.IgnoreNotFound(err)
			}
			return fmt.Errorf("%T %s is there", object, object.GetName())
		})
		if err != nil {
			return err
		}
	}
	return nil
}
