package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/program"
	"github.com/stowage-dev/stowage/test/harness/cluster"
)

func stream(ctx context.Context, c *cluster.Cluster) error {
	scheme, err := program.Scheme()
	if err != nil {
		return err
	}
	watches, err := cache.New(c.Config, cache.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("watching the cluster: %w", err)
	}
	for _, shown := range shownKinds {
		informer, err := watches.GetInformer(ctx, shown.kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching the cluster: %w", err)
		}
		if _, err := informer.AddEventHandler(&printer{kind: shown.name, printed: map[client.ObjectKey]map[string]string{}}); err != nil {
			return fmt.Errorf("watching the cluster: %w", err)
		}
	}
	return watches.Start(ctx)
}

// printer prints what is new about the objects of one kind. Its informer calls it for one
// after the other.
type printer struct {
	kind string
	// printed is the last line, by object and by what it is about.
	printed map[client.ObjectKey]map[string]string
}

// OnAdd implements toolscache.ResourceEventHandler. Events from before the
// start are old news; the state of other objects is worth a line.
func (p *printer) OnAdd(object any, isInInitialList bool) {
	if _, isEvent := object.(*corev1.Event); isEvent && isInInitialList {
		return
	}
	p.print(object)
}

// OnUpdate implements toolscache.ResourceEventHandler.
func (p *printer) OnUpdate(_, object any) { p.print(object) }

// OnDelete implements toolscache.ResourceEventHandler.
func (p *printer) OnDelete(object any) {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	gone, ok := object.(client.Object)
	if _, isEvent := object.(*corev1.Event); !ok || isEvent {
		return
	}
	delete(p.printed, client.ObjectKeyFromObject(gone))
	printLine(time.Now(), p.kind, nameOf(gone), "gone")
}

func (p *printer) print(object any) {
	about, ok := object.(client.Object)
	if !ok {
		return
	}
	key := client.ObjectKeyFromObject(about)
	printed := p.printed[key]
	if printed == nil {
		printed = map[string]string{}
		p.printed[key] = printed
	}
	for _, fact := range factsOf(about) {
		if printed[fact.about] != fact.text {
			printed[fact.about] = fact.text
			printLine(time.Now(), p.kind, nameOf(about), fact.text)
		}
	}
}

var printing sync.Mutex

func printLine(at time.Time, kind, name, text string) {
	printing.Lock()
	defer printing.Unlock()
	fmt.Printf("%s  %-8s %-24s %s\n", at.Format(time.TimeOnly), kind, name, text)
}
