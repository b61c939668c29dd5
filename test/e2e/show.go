package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// kinds are those of objects that tell what went wrong.
var kinds = []string{
	"nodes", "csinodes", "csidrivers", "storageclasses", "storagebackends", "localvolumes", "localdisks", "csistoragecapacities",
	"persistentvolumes", "persistentvolumeclaims", "volumeattachments", "pods", "daemonsets", "deployments", "statefulsets", "events",
}

// told is what is to be seen of a story that didn't hold: its pods, claims and events.
func (s *scene) told(ctx context.Context) string {
	objects, err := s.bed.kubectl(ctx, "", "get", "pods,pvc", "--namespace="+s.namespace, "--output=wide")
	if err != nil {
		return err.Error()
	}
	events, err := s.bed.kubectl(ctx, "", "get", "events", "--namespace="+s.namespace, "--sort-by=.metadata.creationTimestamp")
	if err != nil {
		events = err.Error()
	}
	return objects + "\n" + events
}

// show keeps all objects, and what Stowage's pods logged, beside the other logs, and
// prints what people look at first.
func (b *bed) show(ctx context.Context) {
	if b.Plane == nil {
		return
	}
	for _, kind := range kinds {
		b.keep(ctx, kind+".yaml", "get", kind, "--all-namespaces", "--output=yaml")
	}
	overview, err := b.kubectl(ctx, "", "get", "nodes,storagebackends,pv,volumeattachments,pods,pvc", "--all-namespaces", "--output=wide")
	fmt.Printf("\n%s\n", overview)
	if err != nil {
		fmt.Println(err)
	}
	b.keepLogs(ctx)
}

// keepLogs keeps what the containers of Stowage's pods printed, of those before a
// restart, too.
func (b *bed) keepLogs(ctx context.Context) {
	pods, err := b.kubectl(ctx, "", "get", "pods", "--namespace="+system, "--output=name")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, pod := range strings.Fields(pods) {
		name := strings.TrimPrefix(pod, "pod/")
		b.keep(ctx, name+".log", "logs", "--namespace="+system, pod, "--all-containers")
		b.keep(ctx, name+"-previous.log", "logs", "--namespace="+system, pod, "--all-containers", "--previous")
	}
}

// keep writes what kubectl prints to a file, if that is anything.
func (b *bed) keep(ctx context.Context, name string, arguments ...string) {
	output, err := b.kubectl(ctx, "", arguments...)
	if err != nil {
		return
	}
	path := filepath.Join(b.Folder.Logs(), "objects", name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(output), 0o644)); err != nil {
		fmt.Println(err)
	}
}
